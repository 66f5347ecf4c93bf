// A promise that nobody will settle.
await new Promise(() => {});
