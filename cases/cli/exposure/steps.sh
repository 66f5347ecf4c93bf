ringfence expose --preset none 2>/dev/null
ringfence new mine 2>/dev/null && ringfence publish mine
ringfence expose --exclude mine 2>/dev/null
ringfence run mine --args '{"who":"x"}'
ringfence expose mine --category MATH --json | grep -c calculateLoan
ringfence expose --forget --category MATH 2>/dev/null
ringfence run mine --args '{"who":"x"}'
ringfence expose --auto false 2>/dev/null
ringfence run queryJson
ringfence expose --forget mine --json
cat ring/ringfence.toml
ringfence expose min
ringfence expose --preset startr
