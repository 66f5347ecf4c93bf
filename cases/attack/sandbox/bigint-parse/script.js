// A BigInt of 300,000 digits, parsed.
for (;;) BigInt("7".repeat(300000));
