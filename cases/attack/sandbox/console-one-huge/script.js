// One line of megabytes.
console.log("x".repeat(3000000));
