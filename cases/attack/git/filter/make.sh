# Attributes that ask for filters, diffs and merges by name.
entry 100644 .gitattributes '* filter=evil diff=evil merge=evil text eol=crlf working-tree-encoding=UTF-16\n'
entry 100644 file 'text\n'
