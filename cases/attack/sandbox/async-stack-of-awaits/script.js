// A hundred thousand functions awaiting each other.
const f = async (n) => (n === 0 ? 0 : (await null, 1 + (await f(n - 1))));
return await f(20000);
