# Settings of the served repository stay with the server.
entry 100644 file 'text\n'
server core.fsmonitor 'touch RAN-settings; false'
server core.hooksPath hooks
server alias.status '!touch RAN-alias'
