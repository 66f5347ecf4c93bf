ringfence new mine 2>/dev/null && ringfence publish mine
ringfence expose --exclude mine
ringfence run mine --args '{"who":"x"}'
ringfence expose mine
ringfence run mine --args '{"who":"x"}'
ringfence expose --preset none --auto false
ringfence expose --forget mine --json
cat ring/ringfence.toml
ringfence expose min
ringfence expose --preset startr
