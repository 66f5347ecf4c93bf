// Decimal digits of a million bits.
return ((1n << 1000000n) - 1n).toString().length;
