// Arrow functions inside each other.
return eval("a=>".repeat(50000) + "1");
