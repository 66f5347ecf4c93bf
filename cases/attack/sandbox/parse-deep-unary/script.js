// A million unary operators.
return eval("!".repeat(1000000) + "1");
