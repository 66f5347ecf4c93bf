git -c protocol.allow=always clone -q --recurse-submodules "$REPO" clone
