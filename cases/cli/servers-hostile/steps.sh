ringfence servers add bad --read tools.json --era legacy -- bridge-test-server good --tools $PWD/tools.json > out.txt 2> err.txt; cat out.txt
grep -c "$(printf '\033')" out.txt err.txt
ringfence servers review bad --json | grep -c "$(printf '\033\|\342\200\256')"
ringfence servers show bad
ringfence servers accept bad
