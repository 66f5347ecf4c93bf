tree=$(git write-tree)
git update-ref refs/heads/main "$(git commit-tree -m "${MESSAGE-hostile}" "$tree")"
mkdir "$REPO"
cp -r .git/. "$REPO"
git -C "$REPO" config core.bare true
