// Fresh QuickJS contexts from the npm package, one after the other: prints the
// processor time of one in microseconds, the whole process counted.
import { getQuickJS } from "quickjs-emscripten";

const count = Number(process.argv[2]);
const engine = await getQuickJS();

const once = () => {
  const context = engine.newContext();
  const a = context.newNumber(1);
  const b = context.newNumber(2);
  context.setProp(context.global, "a", a);
  context.setProp(context.global, "b", b);
  a.dispose();
  b.dispose();
  const value = context.unwrapResult(context.evalCode("(function () {\nreturn a + b\n})()"));
  const sum = context.dump(value);
  value.dispose();
  context.dispose();
  if (sum !== 3) throw new Error(`the sum is ${sum}`);
};

for (let i = 0; i < count / 4; i++) once();
const before = process.cpuUsage();
for (let i = 0; i < count; i++) once();
const spent = process.cpuUsage(before);
console.log((spent.user + spent.system) / count);
