mkdir ring && printf '[baseline]\nfs_base_path = "shared"\nfile_read = true\nfile_write = true\n' > ring/ringfence.toml
ringfence import note.json && ringfence publish note --yes
ringfence run note
ls ring/workspaces
printf '[baseline]\nfs_base_path = "../tools"\nfile_read = true\n' > ring/ringfence.toml
ringfence run note
printf "[baseline]\nfs_base_path = \"$PWD\"\nfile_read = true\n" > ring/ringfence.toml
ringfence run note
ringfence config | grep fs_base
ringfence policy lint
ringfence explain --tool note
ringfence doctor | grep -A1 'DOWN  folders'
printf '[baseline]\nfs_base_path = "/nowhere"\nfile_read = true\n' > ring/ringfence.toml
ringfence run note
