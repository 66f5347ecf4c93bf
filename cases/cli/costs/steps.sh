ringfence import pay.json && ringfence publish pay && cp costs.toml ring/ringfence.toml
ringfence config | grep -E '^costs|^limit'
ringfence explain --caller owner --tool pay --args '{"amount": 1}' --door cli | grep -E 'limits|pay' | sed -E 's/in [0-9]+ s/in <n> s/'
ringfence run pay --args '{"amount": 1}'
ringfence run pay --args '{"amount": 2}'
ringfence explain --caller owner --tool pay --args '{"amount": 3}' --door cli | grep -E 'limits|told|pay'
ringfence run pay --args '{"amount": 3}'
ringfence explain --caller bob --tool pay --args '{"amount": 3}' --door cli --json | grep -A4 '"limits"' | sed -E 's/in [0-9]+ s/in <n> s/'
ringfence policy lint
ringfence policy lint slips.toml
printf '[cost]\n"pay" = 2\n' > ring/ringfence.toml && ringfence run pay --args '{"amount": 4}'
printf '[costs]\n"pay" = 2000000\n' > ring/ringfence.toml && ringfence run pay --args '{"amount": 4}'
