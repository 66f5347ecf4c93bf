ringfence servers list
ringfence servers add Bad_Name -- bridge-test-server
ringfence servers add fetch -- bridge-test-server
ringfence servers add acme --env 'API_TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345' -- bridge-test-server
ringfence servers add acme
printf '# mine\n[audit] # yes\nkeep_days = 30\n' > ring/ringfence.toml
ringfence servers add acme --read first.json --era legacy -- bridge-test-server good --tools $PWD/first.json
cat ring/ringfence.toml
ringfence servers add acme -- bridge-test-server
ringfence servers list
ringfence run acme__echo --args '{"words":"hello"}'
ringfence servers accept acme
ringfence servers accept acme nothing --yes
ringfence servers accept acme --yes
ringfence run acme__echo --args '{"words":"hello"}'
ringfence servers show acme
ringfence servers review acme | head -1; ringfence servers verify
ringfence servers verify --write && ringfence servers verify
cp second.json first.json; ringfence servers review acme
ringfence servers verify
ringfence run acme__echo --args '{"words":"old words"}'
ringfence run acme__add --args '{"a":1,"b":2}'
ringfence servers list --json
ringfence servers block acme echo; ringfence run acme__echo --args '{"words":"hello"}'
ringfence servers accept acme add --yes | tail -1; ringfence run acme__add --args '{"a":1,"b":2}'
ringfence servers restart acme
ringfence servers logs acme
ringfence servers block acme; ringfence run acme__add --args '{"a":1,"b":2}'
ringfence servers show acm
ringfence servers remove acme; cat ring/ringfence.toml; ringfence servers remove acme
ringfence servers add broken --era legacy -- bridge-test-server exit-early 2> /dev/null
ringfence audit list --kind notice | cut -d' ' -f3- | grep -o 'server[.].*' | sort
