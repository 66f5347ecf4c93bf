// Catches the end of its console and logs on.
for (;;) { try { for (;;) console.log("x"); } catch {} }
