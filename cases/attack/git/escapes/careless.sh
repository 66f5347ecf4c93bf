git clone -q "$REPO" clone
git -C clone log -p | grep -q "$(printf '\033')" && touch RAN-escapes
