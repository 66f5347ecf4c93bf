# CVE-2014-9390: names that other file systems take for `.git`.
entry 100755 git~1/hooks/RAN-lookalike '#!/bin/sh\n'
