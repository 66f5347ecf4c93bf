ringfence check two.json
ringfence import two.json
ringfence test countWords
ringfence import two.json --replace --rename countWords=myCount
ringfence test myCount
ringfence import two.json --prefix ref_ --json
ringfence import two.json --prefix x_ --rename nothing=else
ringfence publish myCount nothing plain
ringfence list --own
ringfence check two.json ring/tools/plain.json
mkdir read && echo hello > read/a.txt
ringfence import reader.json && ringfence test reader
ringfence test reader --files read
ringfence test reader --files nowhere
mkdir ring/tools/reader.files && cp read/a.txt ring/tools/reader.files && ringfence publish reader
