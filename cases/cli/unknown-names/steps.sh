mkdir ring && printf '[access]\ndeny = ["delte*"]\n' > ring/ringfence.toml && ringfence list
printf '[exposure]\npreset = "startr"\n' > ring/ringfence.toml && ringfence list
printf '[callers.ann]\ncategories = ["files"]\nallow = ["countWord"]\n[groups.crew]\nmembers = ["bob"]\n' > ring/ringfence.toml && ringfence list
printf '[access]\ndeny = ["pay"]\n[expected]\ntools = ["pay"]\n' > ring/ringfence.toml && ringfence import pay.json
printf '[access]\ndeny = ["pay"]\n' > ring/ringfence.toml && ringfence policy lint
ringfence delete pay
ringfence policy lint
ringfence doctor | grep settings
printf '[access]\ndeny = ["pay", "delete*"]\n' > ring/ringfence.toml && ringfence run countWords
