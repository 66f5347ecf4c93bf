ringfence new good 2>/dev/null && ringfence publish good
cp ring/tools/good.json ring/tools/copy.json
printf '{"name": ' > ring/tools/broken.json
ringfence list --own
ringfence run good --args '{"who":"x"}'
rm ring/tools/copy.json
ringfence run good --args '{"who":"x"}'
ringfence doctor | tail -2
