ringfence new hello 2>/dev/null
ringfence new hello
ringfence run helo
ringfence publish helo
ringfence new ''
ringfence new 'two words; x'
ringfence new -- -v 2>&1 | tail -1
ringfence run hello --args '{"who":'
ringfence run hello --tool x
ringfence show nothing
ringfence audit show 0000
ringfence audit list --since yesterday
