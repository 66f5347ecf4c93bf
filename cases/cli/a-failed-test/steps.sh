ringfence import bad.json
ringfence test bad
ringfence test bad --json
ringfence publish bad
ringfence list --own
ringfence list --state test-failed --json | grep '"state"'
ringfence audit list
