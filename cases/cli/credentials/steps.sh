ringfence import keyed.json
mkdir -m 700 handed && printf 'sk-from-systemd\n' > handed/SERVICE_KEY && chmod 400 handed/SERVICE_KEY
CREDENTIALS_DIRECTORY=$PWD/handed ringfence publish keyed --yes
CREDENTIALS_DIRECTORY=$PWD/handed ringfence run keyed
CREDENTIALS_DIRECTORY=$PWD/handed ringfence secrets list keyed
ringfence run keyed
printf 'SERVICE_KEY=sk-from-file\n' > ring/secrets.env && chmod 600 ring/secrets.env
CREDENTIALS_DIRECTORY=$PWD/handed ringfence run keyed
ringfence audit list --tool keyed --json | grep -c sk-from
CREDENTIALS_DIRECTORY=$PWD/handed ringfence doctor | grep credentials
chmod 644 handed/SERVICE_KEY
CREDENTIALS_DIRECTORY=$PWD/handed ringfence run keyed
CREDENTIALS_DIRECTORY=$PWD/handed ringfence doctor | grep credentials
chmod 400 handed/SERVICE_KEY && touch handed/service-key && chmod 400 handed/service-key
CREDENTIALS_DIRECTORY=$PWD/handed ringfence run keyed
CREDENTIALS_DIRECTORY=handed ringfence run keyed
CREDENTIALS_DIRECTORY=$PWD/none ringfence run keyed
