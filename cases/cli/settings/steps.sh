printf '# ours\n[audit]\ndurability = "full"\n' > config.toml && mkdir ring && cp config.toml ring/ringfence.toml
ringfence config | grep -v default
ringfence config --json | grep -A2 audit.durability
printf '[audit]\ndurabilty = "full"\n' > ring/ringfence.toml
ringfence list
ringfence config
