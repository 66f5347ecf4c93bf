ringfence check page.json
ringfence import page.json && ringfence publish openPage --yes
printf '[callers.kim]\nhosts = ["127.1", "а.example.com", "ⓐ.example.com"]\n' > ring/ringfence.toml && ringfence config
printf '[network]\nprivate_hosts = ["*", "10.0.0.5", "nas.lan"]\n' > ring/ringfence.toml && ringfence config
cp hosts.toml ring/ringfence.toml && ringfence policy show
ringfence policy show --caller bot-7
ringfence policy show --caller bot-1 --json | grep -A8 '"hosts"'
ringfence policy lint
ringfence explain --caller bot-1 --tool openPage --args '{}' | grep -E 'policy|rules'
ringfence explain --caller bot-7 --tool openPage --args '{}' | grep -E 'policy|rules'
ringfence run openPage --args '{"url":"http://127.0.0.9:9/"}' --json | grep -E '"(status|code|message)"'
ringfence audit list --json --limit 1 | grep -E '"(refusal|by)"'
