# CVE-2024-52005 and its kin: control characters in what is shown.
MESSAGE=$(printf 'title \033]0;owned\007 \033[2J\n\nbody \033[31m')
entry 100644 file 'line \033[2J\033]52;c;b3duZWQ=\007\n'
