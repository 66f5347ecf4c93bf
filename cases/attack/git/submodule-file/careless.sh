git -c protocol.file.allow=always clone -q --recurse-submodules "$REPO" clone
