// An endless loop.
while (true) {}
