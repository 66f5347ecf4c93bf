// A loop inside a function made from text.
new Function("for(;;){}")()
