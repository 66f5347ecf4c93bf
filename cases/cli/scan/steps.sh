ringfence scan
ringfence scan nothing.json
ringfence scan mcp.json
ringfence scan mcp.json --json | grep -c ghp_0123456789
ringfence scan clean.json
mkdir -p me/.cursor me/.config/Code/User; cp clean.json me/.cursor/mcp.json; printf '{\n  // mine\n}\n' > me/.config/Code/User/mcp.json; HOME=$PWD/me ringfence scan
ls ring
