// A quadratic string search inside one native call.
return "a".repeat(2000000).indexOf("a".repeat(1000000) + "b");
