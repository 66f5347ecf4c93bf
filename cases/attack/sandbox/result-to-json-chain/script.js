// toJSON gives deeper and deeper objects.
const make = () => ({ toJSON() { return { inner: make() }; } });
return make();
