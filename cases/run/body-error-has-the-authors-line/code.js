const fine = 1;

throw new TypeError("no good");
