# Alone, the program says how things stand, and makes no home where there is none.
ringfence
ls "$RINGFENCE_HOME" 2>/dev/null | wc -l
ringfence init --yes --preset files 2>/dev/null | grep wrote | wc -l
printf '[serve]\nlisten = "127.0.0.1:1"\n' >> "$RINGFENCE_HOME/ringfence.toml"
ringfence
