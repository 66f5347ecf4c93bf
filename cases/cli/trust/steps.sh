ringfence import hello.json && ringfence publish hello
ringfence trust show stdio
cp trust.toml ring/ringfence.toml
ringfence trust show stdio
ringfence stdio < client.jsonl | grep -c '"text":"hello"'
ringfence trust show stdio
ringfence trust feedback stdio 3 --category text --note 'slow'
ringfence trust show stdio
ringfence trust feedback STDIO 11
ringfence trust feedback stdio 10 --json
ringfence trust show stdio --json
ringfence approvals list
setsid -w ringfence approvals approve $(ringfence approvals list | cut -c1-8)
printf '[approvals]\nautomation = "L5"\n' >> ring/ringfence.toml
ringfence approvals approve $(ringfence approvals list | cut -c1-8) --automation
ringfence trust show stdio
ringfence callers list
