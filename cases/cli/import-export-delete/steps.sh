ringfence import two.json
ringfence list --own
ringfence import two.json
ringfence import two.json --replace --json
ringfence publish double
ringfence export double --output out.json && grep -c '"draft": false' out.json
ringfence delete double half
ls ring/trash
ringfence list --own
