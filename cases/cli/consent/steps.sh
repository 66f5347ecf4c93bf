ringfence import leak.json
ringfence test leak
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI ringfence check leak.json
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI ringfence test leak
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI ringfence test leak.json --json
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI ringfence run leak.json
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI ringfence publish leak
mkdir project && echo precious > project/keep.txt
sed "s|PLACE|$PWD/project|" wipe.tmpl > wipe.json && ringfence import wipe.json
ringfence test wipe
ringfence test wipe --yes
cat project/keep.txt
ringfence test wipe
ringfence import wipe.json --replace
ringfence publish wipe
ringfence publish wipe --yes
cat project/keep.txt
ringfence audit list --kind notice
sed "s|PLACE|$PWD/ring|" wipe.tmpl > home.json && ringfence test home.json --yes
ringfence run home.json --yes
sed "s|PLACE|$PWD|" wipe.tmpl > home.json && ringfence test home.json --yes
ringfence list --own
ringfence test wipe --offline leak
