# Closed in git: such an address is not taken.
git clone -q --recurse-submodules "$REPO" clone
git -C clone config --get submodule.sub.url || touch RAN-closed-by-git
