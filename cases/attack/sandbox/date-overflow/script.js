// A date beyond all dates in the result.
return [new Date(8.64e15 + 1), new Date(-8.64e15)];
