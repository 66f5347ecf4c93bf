// A getter of the result never returns.
return { get x() { for (;;) {} } };
