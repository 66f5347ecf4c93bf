# CVE-2018-17456: the address of a submodule is an option of `git clone`.
entry 160000 sub
entry 100755 payload '#!/bin/sh\ntouch RAN-payload\n'
entry 100644 .gitmodules '[submodule "sub"]\n\tpath = sub\n\turl = -u./payload\n'
