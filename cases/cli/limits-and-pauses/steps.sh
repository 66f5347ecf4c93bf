ringfence import pay.json && ringfence publish pay && cp rules.toml ring/ringfence.toml
ringfence callers list
ringfence run pay --args '{"amount": 2000}'
ringfence run pay --args '{"amount": 2000}'
ringfence run pay --args '{"amount": 7}'
ringfence callers list
ringfence run pay --args '{"amount": 2000}' 2>/dev/null
ringfence run pay --args '{"amount": 2000}' 2>/dev/null
ringfence run pay --args '{"amount": 2000}'
ringfence run pay --args '{"amount": 7}'
ringfence callers list
ringfence callers show owner --json
ringfence callers show onwer
ringfence callers resume owner
ringfence callers pause owner --note 'away for a week'
ringfence run pay --args '{"amount": 8}'
ringfence callers resume owner
ringfence run pay --args '{"amount": 8}'
ringfence run pay --args '{"amount": 9}'
ringfence run pay --args '{"amount": 9}' --json | sed -n '/error/,/}/p'
ringfence callers pause Bot --note 'writes too many mails'
ringfence callers pause bot
ringfence callers show bot
ringfence callers resume BOT --json
ringfence audit list | grep -c caller.paused
