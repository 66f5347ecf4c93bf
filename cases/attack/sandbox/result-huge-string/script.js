// A result of more bytes than allowed.
return "x".repeat(2000000);
