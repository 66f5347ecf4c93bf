# A submodule whose address is a folder of the client's disk.
git init -q -b main "$WORK-secret"
git -C "$WORK-secret" commit -q --allow-empty -m first
touch "$WORK-secret/RAN-secret"
git -C "$WORK-secret" add -A
git -C "$WORK-secret" commit -q -m secret
object=$(git -C "$WORK-secret" rev-parse HEAD)
printf '160000 %s\tsub\n' "$object" | git update-index --add --index-info
entry 100644 .gitmodules "[submodule \"sub\"]\n\tpath = sub\n\turl = $WORK-secret\n"
