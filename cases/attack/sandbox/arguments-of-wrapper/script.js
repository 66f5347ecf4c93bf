// Looks at the wrapper from inside.
return [arguments.length, typeof arguments.callee, new.target === undefined];
