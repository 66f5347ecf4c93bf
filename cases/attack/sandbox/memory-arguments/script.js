// A call with millions of arguments.
return Math.max(...new Array(20000000).fill(1));
