ringfence import pay.json && ringfence publish payment.send
printf '[callers.ann]\nlevel = "standard"\nautonomy = "locked"\n[callers.eve]\ndeny = ["*"]\n[[rule]]\nid = "big"\ntools = ["payment.*"]\nwhen = "args.amount > 1000"\neffect = "deny"\nreason = "too much"\n' > ring/ringfence.toml
ringfence run payment.send --args '{"amount":5000}'
ringfence audit list --json --limit 1 | sed -n 's/.*"callId": "\(.*\)",.*/\1/p' > id
ringfence explain $(cat id)
ringfence explain $(cat id) --json
ringfence explain --tool payment.send --args '{"amount":5000}' --door cli
ringfence explain --tool payment.send --args '{"amount":5}' --caller bob
ringfence explain --tool payment.send --args '{"amount":5}' --caller ann
ringfence explain --tool payment.send --args '{"amount":5}' --caller eve
ringfence explain --tool payment.send --args '{"amount":"much"}' --caller bob
ringfence explain --tool payment.send --args '{"amount":5000}' --caller bob --json
ringfence explain --tool nothing --caller bob
ringfence approvals list
ringfence audit list | wc -l
ringfence explain
ringfence explain $(cat id) --tool payment.send
ringfence explain 00000000
ringfence explain --tool payment.send --args 'x'
