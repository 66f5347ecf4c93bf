ringfence import mail.json && ringfence publish mail && printf '[approvals]\nwait_seconds = 1\n' > ring/ringfence.toml
ringfence run mail --args '{"to":"b\u202eob"}'
ringfence approvals list
ringfence approvals list --json
ringfence approvals list --json | sed -n 's/.*"id": "\([0-9a-f]*\)".*/\1/p' > id
ringfence approvals show $(cut -c1-8 id)
ringfence approvals approve $(cat id) --scope session
setsid -w ringfence approvals approve $(cat id)
ringfence approvals approve $(cat id) --automation
printf '[approvals]\nwait_seconds = 1\nautomation = "L0"\n' > ring/ringfence.toml
ringfence approvals approve $(cat id) --automation --scope same-arguments --note 'as agreed'
ringfence audit list --kind notice | grep -o 'approval.answered .* automation'
ringfence approvals approve $(cat id)
ringfence run mail --args '{"to":"b\u202eob"}'
ringfence run mail --args '{"to":"b\u202eob"}'
ringfence approvals revoke $(cat id)
ringfence approvals list
ringfence run mail --args '{"to":"bob"}' 2>/dev/null
ringfence approvals watch --count 1
ringfence approvals deny $(ringfence approvals list | cut -c1-8) --note 'not on Sundays'
ringfence run mail --args '{"to":"bob"}'
ringfence approvals list --all
ringfence audit list --tool mail | grep -c approval.declined
ringfence approvals show 00000000
ringfence approvals approve x --scope forever
