// Two million brackets, parsed.
return JSON.parse("[".repeat(2000000));
