return [typeof s, typeof n, typeof x, typeof b, Array.isArray(l), Object.keys(o), Number.isInteger(n)];
