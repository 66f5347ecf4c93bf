// padEnd to a gigabyte less one.
return "".padEnd(2 ** 30 - 1, "ab").length;
