// toJSON of the result never returns.
return { toJSON() { for (;;) {} } };
