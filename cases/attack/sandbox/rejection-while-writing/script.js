// Promises that are rejected, or handled, while the result is written.
const late = Promise.reject(new Error('late'));
return [1, { toJSON() { late.catch(() => {}); Promise.reject(new Error('new')); return { b: 2 }; } }];
