ringfence expose convertCase > /dev/null
ringfence script check good.js
ringfence script check bad.js
ringfence script check bad.js --json
ringfence script check broken.js
ringfence script run good.js --context '{"who":"ann"}'
ringfence script run good.js --context '{"who":"ann"}' --json
ringfence script run good.js --allow queryJson
ringfence script run bad.js
ringfence script run broken.js --json
ringfence script run fails.js
ringfence script run fails.js --json
ringfence script run throws.js
ringfence script run throws.js --preset locked_down --json
ringfence script run good.js --context '[]'
ringfence script run missing.js
ringfence audit list | awk '{print $4, $6, $8}' | sort | uniq -c
printf '[codecall]\nmode = "off"\n' > ring/ringfence.toml
ringfence script run good.js
