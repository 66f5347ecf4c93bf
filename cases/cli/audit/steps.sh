ringfence new hello 2>/dev/null && ringfence publish hello
ringfence run hello --args '{"who":"Ada"}' --json
ringfence run hello --args '{"whom":"Ada"}'
ringfence audit list --status refused
ringfence audit list --tool hello --limit 1 --json
ringfence audit export | wc -l
ringfence audit verify --json
ringfence audit verify --head 1:0000000000000000000000000000000000000000000000000000000000000000
ringfence audit prune --before 0s --json
ringfence audit verify
