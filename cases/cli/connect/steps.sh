ringfence connect
ringfence connect cursor
HOME=$PWD/me ringfence connect cursor --yes
mkdir -p me/.cursor && printf '{\n    "mcpServers": {\n        "other": {"command": "x", "env": {"N": 1.50}}\n    }\n}\n' > me/.cursor/mcp.json
HOME=$PWD/me ringfence connect cursor
HOME=$PWD/me ringfence connect cursor --yes
cat me/.cursor/mcp.json
HOME=$PWD/me ringfence connect cursor --yes
HOME=$PWD/me ringfence connect cursor --yes --http
cat me/.cursor/mcp.json
diff ring/token me/.cursor/mcp.json | grep -c rf_local_
HOME=$PWD/me ringfence connect cursor --remove --yes
cat me/.cursor/mcp.json
cat me/.cursor/mcp.json.bak | grep -c ringfence
ls -A me/.cursor
HOME=$PWD/me ringfence connect cursor --remove --yes --json
HOME=$PWD/me ringfence connect claude-code --yes --http
stat -c %a me/.claude.json
mkdir -p me/.config/Code/User && printf '{\n  // mine\n  "servers": {}\n}\n' > me/.config/Code/User/mcp.json
HOME=$PWD/me ringfence connect vscode --yes
cat me/.config/Code/User/mcp.json
mkdir -p xdg/Claude && HOME=$PWD/me XDG_CONFIG_HOME=$PWD/xdg ringfence connect claude-desktop --yes
HOME=$PWD/me XDG_CONFIG_HOME=$PWD/xdg ringfence connect claude-desktop --yes --http
ln -s real.json me/.cursor/link.json; mv me/.cursor/mcp.json me/.cursor/real.json; mv me/.cursor/link.json me/.cursor/mcp.json
HOME=$PWD/me ringfence connect cursor --yes 2>/dev/null; test -L me/.cursor/mcp.json && grep -c stdio me/.cursor/real.json
ringfence connect emacs
