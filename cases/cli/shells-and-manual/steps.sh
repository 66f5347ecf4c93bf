ringfence completions bash | grep -c ringfence__
ringfence completions fish | head -1
ringfence completions tcsh
ringfence man | head -3
ringfence man | grep -c '^\.SH NAME'
