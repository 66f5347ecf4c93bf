# Both ways are closed in git; what they led to is that a hook of the tree runs.
git clone -q -c core.hooksPath=hooks "$REPO" clone
