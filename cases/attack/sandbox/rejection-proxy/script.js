// What a rejection is told with must not ask it anything.
const trap = () => { for (;;) {} };
const handler = new Proxy({}, { get: () => trap });
Promise.reject(new Proxy({}, handler));
Promise.reject(Object.create(new Proxy(new Error('x'), handler)));
Promise.reject({ deep: [{ inner: new Proxy([], handler) }] });
return 1;
