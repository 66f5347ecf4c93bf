// An object whose display never ends.
console.log({ get x() { for (;;) {} } });
