// An error with a message of megabytes.
throw new Error("x".repeat(8000000));
