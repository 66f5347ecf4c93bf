# CVE-2025-48385: the server names a bundle, and the client fetches it from elsewhere.
entry 100644 file 'text\n'
git commit -q -m first
git branch RAN-bundle
git bundle create -q "$WORK-bundle" RAN-bundle
git branch -q -D RAN-bundle
server uploadpack.advertiseBundleURIs true
server bundle.version 1
server bundle.mode all
server bundle.one.uri "file://$WORK-bundle"
