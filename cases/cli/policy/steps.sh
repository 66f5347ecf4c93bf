ringfence import pay.json && ringfence publish payment.send && ringfence keys add bot-7 > key && mkdir ring/rules && cp live.toml ring/rules/money.toml
ringfence policy show
ringfence policy show --caller bot-7
ringfence policy show bots-ask
ringfence policy show bots-aks
ringfence policy show --caller ann --json
ringfence config | grep -E 'rule'
ringfence run payment.send --args '{"amount":3}' && ringfence run payment.send --args '{"amount":2000}'
ringfence run payment.send --args '{"amount":9000}' --json | grep -E '"(code|message|rule|remedy|retry|retryable)"'
ringfence policy lint
ringfence policy lint odd.toml
ringfence policy lint odd.toml --json | grep -c severity
printf '[[rule]]\nid = "x"\nefect = "deny"\n' > slip.toml && ringfence policy lint slip.toml
ringfence policy test ring/rules/money.toml
ringfence policy test looser.toml
ringfence policy test looser.toml --json
ringfence policy test looser.toml --since 0s
printf '[access]\ndeny = ["payment.*"]\n[audit]\narguments = "digest"\n' > whole.toml && ringfence policy test whole.toml
cp whole.toml ring/ringfence.toml && sed -i 1,2d ring/ringfence.toml && ringfence run payment.send --args '{"amount":2000}'
ringfence policy test looser.toml --since 1d | tail -2
printf '[rules]\nshadow = "looser.toml"\n' > ring/ringfence.toml && cp looser.toml ring/ && ringfence run payment.send --args '{"amount":2000}'
ringfence run payment.send --args '{"amount":9000}'
ringfence audit list --differs
ringfence audit list --differs --json | grep -A6 '"shadow"'
ringfence policy show | tail -1
echo 'x = 1' > ring/looser.toml && ringfence run payment.send --args '{"amount":4}'
ringfence audit list --kind notice
ringfence audit verify | cut -d: -f1
ringfence policy test missing.toml
cp caller.toml ring/ringfence.toml && ringfence policy show --caller bot-7
ringfence policy show --caller bot-7 --json | head -60
printf '[[rule]]\nid = "long"\nwhen = "size(args) > 2000"\neffect = "ask"\n' > long.toml && ringfence policy lint long.toml
printf '[[rule]]\nid = "long"\nwhen = "size(string(args)) > 2000"\neffect = "ask"\n' > long.toml && ringfence policy lint long.toml
