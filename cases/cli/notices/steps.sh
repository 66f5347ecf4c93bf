ringfence keys add ann --expires 30 2>/dev/null >/dev/null && ringfence keys rotate ann 2>/dev/null >/dev/null && ringfence keys revoke ann
ringfence new hello >/dev/null 2>&1 && ringfence publish hello && ringfence unpublish hello && ringfence delete hello > /dev/null
printf '[exposure]\nauto = true\n' > ring/ringfence.toml && ringfence list --own
ringfence audit list --kind notice
ringfence audit list --kind all | wc -l
ringfence audit list | wc -l
ringfence audit list --kind notice --caller ann --json | grep -E '"(act|about|by|through|message|role)"'
ringfence audit show $(ringfence audit list --kind notice --limit 1 | cut -d' ' -f4)
ringfence audit export --kind notice | wc -l
ringfence audit verify | head -1
ringfence explain $(ringfence audit list --kind notice --limit 1 | cut -d' ' -f4)
ringfence audit list --kind everything
