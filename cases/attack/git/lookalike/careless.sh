git -c core.protectNTFS=false clone -q "$REPO" clone
