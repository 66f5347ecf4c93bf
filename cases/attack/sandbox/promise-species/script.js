// A promise of the host with another constructor: its reactions are the script's own,
// and nothing of the host reaches the constructor.
const given = [];
class AnyPromise extends Promise {}
const answer = probe.queued('echo', 7);
answer.constructor = { [Symbol.species]: function (executor) { given.push(typeof executor); return new AnyPromise(executor); } };
const next = answer.then((value) => value);
return [answer.constructor.constructor.name, next.constructor.name, await next];
