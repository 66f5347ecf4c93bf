// Joins an array of 4 billion holes.
return new Array(2 ** 32 - 1).join("").length;
