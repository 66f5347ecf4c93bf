ringfence connect
ringfence connect --url https://tools.example.com | grep add
ringfence connect cursor
HOME=$PWD/me ringfence connect cursor --yes
mkdir -p me/.cursor && printf '{\n    "mcpServers": {\n        "other": {"command": "x", "env": {"N": 1.50}}\n    }\n}\n' > me/.cursor/mcp.json
chmod 644 me/.cursor/mcp.json; HOME=$PWD/me ringfence connect cursor
ringfence keys list
HOME=$PWD/me ringfence connect cursor --yes
cat me/.cursor/mcp.json; stat -c '%a %n' me/.cursor/*
cat ring/ringfence.toml
ringfence keys list
HOME=$PWD/me ringfence connect cursor --yes
chmod 644 me/.cursor/mcp.json me/.cursor/mcp.json.bak; HOME=$PWD/me ringfence connect cursor --yes; stat -c '%a %n' me/.cursor/*
HOME=$PWD/me ringfence connect cursor --yes --answers l5
HOME=$PWD/me ringfence connect cursor --yes --answers L6
cat ring/ringfence.toml
HOME=$PWD/me ringfence connect cursor --yes --http
cat me/.cursor/mcp.json
HOME=$PWD/me ringfence connect cursor --yes --url http://127.0.0.1:9999 2>/dev/null; grep -c 127.0.0.1:9999/mcp me/.cursor/mcp.json
HOME=$PWD/me ringfence connect cursor --yes --url gopher://x
test -e ring/token || echo no token was made
HOME=$PWD/me ringfence connect cursor --remove --yes
cat me/.cursor/mcp.json; cat ring/ringfence.toml; ringfence keys list
cat me/.cursor/mcp.json.bak | grep -c ringfence
ls -A me/.cursor
HOME=$PWD/me ringfence connect cursor --remove --yes --json
printf '[serve]\nlisten = "0.0.0.0:8123"\n' > ring/ringfence.toml; HOME=$PWD/me ringfence connect claude-code --yes --http --answers L0
stat -c %a me/.claude.json; cat me/.claude.json; cat ring/ringfence.toml
ringfence keys add vscode > /dev/null
mkdir -p me/.config/Code/User && printf '{\n  // mine\n  "servers": {}\n}\n' > me/.config/Code/User/mcp.json
HOME=$PWD/me ringfence connect vscode --yes
HOME=$PWD/me ringfence connect vscode --yes --name editor
cat me/.config/Code/User/mcp.json
mkdir -p xdg/Claude && HOME=$PWD/me XDG_CONFIG_HOME=$PWD/xdg ringfence connect claude-desktop --yes --json 2>/dev/null
HOME=$PWD/me XDG_CONFIG_HOME=$PWD/xdg ringfence connect claude-desktop --yes --http
ringfence doctor | grep answers
ln -s real.json me/.cursor/link.json; mv me/.cursor/mcp.json me/.cursor/real.json; mv me/.cursor/link.json me/.cursor/mcp.json
HOME=$PWD/me ringfence connect cursor --yes 2>/dev/null; test -L me/.cursor/mcp.json && grep -c stdio me/.cursor/real.json
ringfence keys revoke cursor; ringfence keys add cursor > key
RINGFENCE_KEY=rf_nothing ringfence stdio < /dev/null
RINGFENCE_KEY=$(cat key) ringfence stdio < /dev/null; ringfence keys revoke cursor; RINGFENCE_KEY=$(cat key) ringfence stdio < /dev/null
ringfence connect emacs
