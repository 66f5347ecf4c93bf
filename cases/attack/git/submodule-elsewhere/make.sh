# Only the address of the repository was allowed; its submodule is at another host.
git init -q -b main "$WORK-other"
touch "$WORK-other/RAN-other"
git -C "$WORK-other" add -A
git -C "$WORK-other" commit -q -m other
object=$(git -C "$WORK-other" rev-parse HEAD)
printf '160000 %s\tsub\n' "$object" | git update-index --add --index-info
entry 100644 .gitmodules '[submodule "sub"]\n\tpath = sub\n\turl = https://evil.example.com/x.git\n'
