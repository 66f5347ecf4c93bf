ringfence new hello
ringfence list --own
ringfence run hello --args '{"who":"Ada"}'
ringfence test hello
ringfence publish hello
ringfence run hello --args '{"who":"Ada"}'
ringfence list --own
ringfence audit list
ringfence audit verify
