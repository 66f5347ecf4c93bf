ringfence completions bash | tail -1
ringfence completions zsh | head -1
ringfence completions fish | tail -1
ringfence completions elvish | grep -c 'ringfence;audit;verify'
ringfence completions tcsh
ringfence complete -- audit ver
ringfence complete -- run countWo
ringfence complete -- no-such-command --
ringfence man | head -3
ringfence man audit list | grep -A1 '^\.SH NAME'
ringfence man no-such-command
ringfence man --output pages
ls pages | wc -l
ringfence --help
ringfence policy --help
