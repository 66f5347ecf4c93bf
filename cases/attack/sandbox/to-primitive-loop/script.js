// A conversion that never returns.
return `${{ [Symbol.toPrimitive]() { for (;;) {} } }}`;
