// Deeply nested functions, compiled again and again.
for (let i = 0; i < 12; i++) eval("a=>".repeat(1500) + "1");
return "done";
