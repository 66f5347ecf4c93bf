// A power whose result does not fit.
return String(2n ** (2n ** 40n));
