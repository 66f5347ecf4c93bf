// A few lines of many bytes.
for (;;) console.log("x".repeat(10000));
