ringfence import keyed.json
ringfence publish keyed
printf 'SERVICE_KEY=sk-123456\n' > ring/secrets.env && chmod 644 ring/secrets.env
ringfence publish keyed
chmod 600 ring/secrets.env
ringfence publish keyed
ringfence run keyed
ringfence audit list --tool keyed --json | grep -c sk-123456
rm ring/secrets.env
ringfence list --own
