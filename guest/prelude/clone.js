// structuredClone, for the values that exist here.
(host) => {
  const errors = new Map(
    [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((kind) => [
      kind.prototype.name,
      kind,
    ]),
  );
  const TypedArray = Object.getPrototypeOf(Uint8Array);
  const { isArray } = Array;
  const { keys, defineProperty } = Object;
  const { isView } = ArrayBuffer;
  const refuse = (what) => {
    throw new DOMException(`${what} cannot be cloned`, "DataCloneError");
  };
  const set = (target, key, value) =>
    defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });

  const cloneBuffer = (buffer) => buffer.slice(0);
  const cloneView = (view, seen) => {
    const buffer = clone(view.buffer, seen);
    const length = view instanceof TypedArray ? view.length : view.byteLength;
    return new view.constructor(buffer, view.byteOffset, length);
  };
  const cloneError = (error, seen) => {
    const Kind = errors.get(error.name) ?? Error;
    const copy = new Kind(`${error.message}`);
    seen.set(error, copy);
    set(copy, "name", errors.has(error.name) ? error.name : "Error");
    if ("cause" in error) set(copy, "cause", clone(error.cause, seen));
    return copy;
  };
  const cloneMembers = (from, to, seen) => {
    seen.set(from, to);
    for (const key of keys(from)) set(to, key, clone(from[key], seen));
    return to;
  };

  const clone = (value, seen) => {
    if (typeof value === "function") refuse("a function");
    if (typeof value === "symbol") refuse("a symbol");
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => (seen.set(value, copy), copy);
    if (isArray(value)) {
      const copy = keep([]);
      copy.length = value.length;
      return cloneMembers(value, copy, seen);
    }
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [key, item] of [...value]) copy.set(clone(key, seen), clone(item, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const item of [...value]) copy.add(clone(item, seen));
      return copy;
    }
    if (value instanceof ArrayBuffer) return keep(cloneBuffer(value));
    if (isView(value)) return keep(cloneView(value, seen));
    if (value instanceof Error) return cloneError(value, seen);
    if (value instanceof Boolean || value instanceof Number || value instanceof String) {
      return keep(Object(value.valueOf()));
    }
    if (typeof value.valueOf === "function" && typeof value.valueOf() === "bigint") {
      return keep(Object(value.valueOf()));
    }
    for (const Kind of [Promise, WeakMap, WeakSet, WeakRef]) {
      if (value instanceof Kind) refuse(`a ${Kind.name}`);
    }
    return cloneMembers(value, {}, seen);
  };

  host.reserve("structuredClone", (value, options) => {
    const seen = new Map();
    for (const buffer of options?.transfer ?? []) seen.set(buffer, buffer.transfer());
    return clone(value, seen);
  });
}
