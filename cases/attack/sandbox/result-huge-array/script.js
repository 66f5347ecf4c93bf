// An array of nulls without end.
return new Array(2 ** 32 - 1);
