mkdir -p me/.cursor; cp mcp.json me/.cursor/mcp.json; sed -i "s,PLACE,$PWD,g" me/.cursor/mcp.json; chmod 640 me/.cursor/mcp.json; cp -p me/.cursor/mcp.json before.json
HOME=$PWD/me ringfence wrap
HOME=$PWD/me ringfence wrap cursr
HOME=$PWD/me ringfence wrap vscode
HOME=$PWD/me ringfence wrap cursor --dry-run
HOME=$PWD/me ringfence wrap cursor
cmp before.json me/.cursor/mcp.json; ls -A me/.cursor; ls ring/secrets.env
HOME=$PWD/me ringfence wrap cursor --yes
cat me/.cursor/mcp.json; stat -c '%a %n' me/.cursor/*; stat -c %a ring/secrets.env ring/wraps/*
cat ring/ringfence.toml; sed 's/=.*/=…/' ring/secrets.env
HOME=$PWD/me ringfence wrap cursor --yes
grep -rl ghp_0123456789 ring me | sort
ringfence servers list
ringfence run notes__echo --args '{"words":"hello"}'
ringfence servers review notes | head -2
ringfence servers accept notes --yes | tail -1; ringfence servers accept code-search echo variable --yes | tail -1
ringfence run notes__echo --args '{"words":"through the fence"}'
ringfence run code-search__variable --args '{"name":"MODE"}'
ringfence run code-search__variable --args '{"name":"CODE_TOKEN"}'
HOME=$PWD/me ringfence unwrap
sed -i 's,"theme": "dark",\n"theme": "light",' me/.cursor/mcp.json; printf ' ' >> me/.cursor/mcp.json; HOME=$PWD/me ringfence unwrap cursor --yes
HOME=$PWD/me ringfence unwrap cursor --yes --force
cmp before.json me/.cursor/mcp.json; stat -c '%a %n' me/.cursor/*; ls ring/wraps; ringfence keys list
HOME=$PWD/me ringfence unwrap
HOME=$PWD/me ringfence wrap me/.cursor/mcp.json --yes --json
HOME=$PWD/me ringfence unwrap --yes --json; cmp before.json me/.cursor/mcp.json
