// Every road to a constructor of functions leads to one whose code is the script's own:
// counted, without powers that were not given.
const kinds = [function () {}, async () => {}, function* () {}, async function* () {}];
const made = kinds.map((kind) => Object.getPrototypeOf(kind).constructor('return typeof process + typeof require + typeof fetch'));
const seen = made[0]();
const viaBind = made[0].bind().constructor('return this === globalThis')();
const viaReflect = Reflect.construct(Function, ['return 1'])();
return seen === 'undefinedundefinedundefined' && viaBind && viaReflect === 1 ? 5 : [seen, viaBind, viaReflect];
