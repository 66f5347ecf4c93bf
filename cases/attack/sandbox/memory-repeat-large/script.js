// A string longer than the memory.
return "x".repeat(2 ** 29).length;
