// Forges the stack of an error, to move its position.
const e = new Error("m");
Object.defineProperty(e, "stack", { value: "at script.js:999999999999:1" });
throw e;
