# A submodule whose address is a command.
entry 160000 sub
entry 100644 .gitmodules '[submodule "sub"]\n\tpath = sub\n\turl = ext::touch RAN-ext\n'
