// The names of code mode: callTool and its kin, each behind its safe name. A tool is
// one queued call; the host decides about it again, whatever is believed here.
//
// The clock of a script moves only when an answer comes, by what the answer says, so
// that a script whose answers come again takes the same way again.
(host) => {
  const { queued, direct, clock, script } = host;
  const { freeze, keys, defineProperty } = Object;
  const { isArray } = Array;
  const { log, info, warn, error: complain, debug } = host.console;
  const all = (promises) => Promise.all(promises);
  const text = String;
  const stringify = JSON.stringify;
  const { floor, min } = Math;
  const ITEMS_MAX = 100;
  const LANES_DEFAULT = 10;
  const LANES_MAX = 20;

  // What of JavaScript's own globals the language of scripts has: every name that some
  // preset allows, as in crates/guard/src/preset/name.rs. The rest goes before a script
  // starts, so that what the guard did not see through leads nowhere.
  host.keep([
    "Math", "JSON", "Array", "Object", "String", "Number", "Boolean", "Date", "undefined", "NaN", "Infinity", "Error",
    "TypeError", "RangeError", "SyntaxError", "ReferenceError", "EvalError", "URIError", "AggregateError", "parseInt",
    "parseFloat", "isNaN", "isFinite", "encodeURIComponent", "decodeURIComponent", "encodeURI", "decodeURI", "BigInt",
  ]);

  const answered = ({ at, value }) => {
    clock(at);
    return value;
  };
  const call = (name, args) => queued("script.call", { name: text(name), args: args ?? {} }, undefined, answered);
  const settled = async (name, args) => {
    try {
      return { success: true, data: await call(name, args) };
    } catch (error) {
      const { code = "VALIDATION", message, toolName = text(name) } = error ?? {};
      return { success: false, error: freeze({ code, message, toolName }) };
    }
  };
  const callTool = (name, args, options) =>
    options?.throwOnError === false ? settled(name, args) : call(name, args);

  const getTool = (name) => direct("script.tool", text(name)) ?? undefined;

  // Several at a time, results in the order of the items. Whatever has begun is
  // waited for; after a failure nothing more begins, and the first item that failed
  // says why.
  const parallel = async (items, fn, options) => {
    if (!isArray(items)) throw new TypeError("parallel takes an array of items");
    const bare = typeof fn !== "function";
    const { maxConcurrency: wanted = LANES_DEFAULT } = (bare ? fn : options) ?? {};
    // Numbers from here on: an object would be asked again each time, and answer anew.
    const maxConcurrency = +wanted;
    const count = +items.length;
    if (count > ITEMS_MAX) throw new RangeError(`parallel takes at most ${ITEMS_MAX} items`);
    if (!(maxConcurrency >= 1)) throw new RangeError("maxConcurrency must be at least 1");
    // A copy: what `fn` does to the array while it runs changes neither which items
    // there are nor how many.
    const own = [];
    for (let index = 0; index < count; index++) own[index] = items[index];
    const work = bare ? (item) => item() : fn;
    const lanes = min(floor(maxConcurrency), LANES_MAX, count);
    const results = [];
    for (let index = 0; index < count; index++) results[index] = undefined;
    let next = 0;
    let failed = count;
    let failure;
    const lane = async () => {
      while (next < count && failed === count) {
        const index = next++;
        try {
          results[index] = await work(own[index], index);
        } catch (error) {
          if (index < failed) {
            failed = index;
            failure = error;
          }
        }
      }
    };
    const running = [];
    for (let index = 0; index < lanes; index++) running[index] = lane();
    await all(running);
    if (failed < count) throw failure;
    return results;
  };

  const shown = (value) => {
    if (value === undefined) return "";
    try {
      return ` ${stringify(value)}`;
    } catch {
      return ` ${text(value)}`;
    }
  };
  const mcpLog = (level, message, data) => log(`[${text(level)}] ${text(message)}${shown(data)}`);
  const mcpNotify = (event, payload) => {
    log(`[notify] ${text(event)}${shown(payload)}`);
    // Waited for, so that a script that ends here has been heard.
    direct("script.notify", `${text(event)}${shown(payload)}`);
  };

  const frozen = (value) => {
    if (typeof value !== "object" || value === null) return value;
    for (const key of keys(value)) frozen(value[key]);
    return freeze(value);
  };

  // Tools named `space.method`, as methods of an object.
  const space = (name, methods) => {
    const made = {};
    for (const method of methods.split(" ")) {
      const full = `${name}.${method}`;
      defineProperty(made, method, { value: (args, options) => callTool(full, args, options), enumerable: true });
    }
    return freeze(made);
  };

  host.face("script", (global) => {
    const give = (name, value) => defineProperty(global, name, { value });
    const { __ag_now: now, __ag_context: context } = global;
    script();
    clock(now);
    give("__safe_callTool", callTool);
    give("__safe_getTool", getTool);
    give("__safe_parallel", parallel);
    give("__safe_mcpLog", mcpLog);
    give("__safe_mcpNotify", mcpNotify);
    give("__safe_console", freeze({ log, info, warn, error: complain, debug }));
    give("__safe_codecallContext", frozen(context));
    give("__ag_space", space);
  });
}
