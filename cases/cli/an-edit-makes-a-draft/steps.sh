ringfence new hello 2>/dev/null
ringfence publish hello
sed -i 's/Hello, /Goodbye, /' ring/tools/hello.json
ringfence list --own
ringfence run hello --args '{"who":"Ada"}'
ringfence publish hello && ringfence run hello --args '{"who":"Ada"}'
ringfence unpublish hello
ringfence check hello
