# The other host stands here as a folder.
git -c protocol.file.allow=always -c "url.$WORK-other.insteadOf=https://evil.example.com/x.git" \
    clone -q --recurse-submodules "$REPO" clone
