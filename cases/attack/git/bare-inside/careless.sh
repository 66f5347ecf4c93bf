git clone -q "$REPO" clone
cd clone/inner/work
git status >/dev/null 2>&1 || true
