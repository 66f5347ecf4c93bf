// A proxy trap that never returns.
return new Proxy({}, { get() { for (;;) {} } }).x;
