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
ringfence approvals approve $(ringfence approvals list | cut -c1-8)
ringfence trust show stdio
ringfence callers list
