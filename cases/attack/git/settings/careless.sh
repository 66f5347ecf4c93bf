# A copy of the folder, as an archive or a file tool makes it, brings them along.
mkdir clone
cp -r "$REPO" clone/.git
git -C clone config core.bare false
git -C clone status >/dev/null 2>&1 || true
