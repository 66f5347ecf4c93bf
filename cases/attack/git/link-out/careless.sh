git clone -q "$REPO" clone
test -r clone/outside/passwd && touch RAN-link
