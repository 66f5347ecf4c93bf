// Closes the wrapper and opens another.
}); globalThis.evil = true; (async function () {
