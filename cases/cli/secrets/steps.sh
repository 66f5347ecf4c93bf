ringfence import keyed.json
ringfence publish keyed
printf 'SERVICE_KEY=sk-123456\n' > ring/secrets.env && chmod 644 ring/secrets.env
ringfence publish keyed
chmod 600 ring/secrets.env
ringfence publish keyed
ringfence publish keyed --yes
ringfence run keyed
ringfence secrets list keyed
ringfence secrets revoke keyed SERVICE_KEY
ringfence run keyed
ringfence list --own
ringfence show keyed
ringfence secrets grant keyed SERVICE_KY
ringfence secrets grant keyed SERVICE_KEY
ringfence secrets list keyed --json
ringfence run keyed
ringfence audit list --tool keyed --json | grep -c sk-123456
ringfence audit list --kind notice
rm ring/secrets.env
ringfence list --own
