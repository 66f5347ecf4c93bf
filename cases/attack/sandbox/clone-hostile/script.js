// structuredClone asks its argument, which answers with itself.
let asked = 0;
const hostile = new Proxy({}, { getPrototypeOf() { asked++; return Date.prototype; }, ownKeys: () => ['a', 'b', 'c'],
  getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: () => 1 });
const found = [];
try { structuredClone(hostile); } catch (error) { found.push(error.name); }
try { structuredClone({ then: () => 1 }); } catch (error) { found.push(error.name); }
return [asked > 0 ? 3 : 0, found.at(-1)];
