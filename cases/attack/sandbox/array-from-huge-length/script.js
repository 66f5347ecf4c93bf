// Builds an array from a length alone.
return Array.from({ length: 2 ** 32 - 1 }).length;
