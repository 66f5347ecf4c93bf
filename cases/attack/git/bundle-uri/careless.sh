git -c transfer.bundleURI=true clone -q "file://$REPO" clone
