// An array with room for four thousand million elements, and none of them.
const sparse = [];
sparse.length = 4294967295;
throw { sparse };
