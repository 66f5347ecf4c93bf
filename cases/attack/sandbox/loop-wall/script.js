// The wall clock ends what the processor clock would allow.
while (true) {}
