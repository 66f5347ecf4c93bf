ringfence keys list
ringfence keys add researcher
ringfence keys add boss --role operator --expires 30
ringfence keys add Researcher
ringfence keys add owner
ringfence keys add oauth:me
ringfence keys add 'two words'
ringfence keys add x --expires 0
ringfence keys add x --role root
ringfence keys list
ringfence keys rotate boss --json
ringfence keys rotate RESEARCHER 2>/dev/null
ringfence keys revoke researcer
ringfence keys revoke researcher
ringfence keys revoke researcher
ringfence keys rotate researcher
ringfence keys list --json
