// A loop inside eval.
eval("for(;;){}")
