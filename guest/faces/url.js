// The face of `URL` and `URLSearchParams`: the WHATWG standard, live in both
// directions. Addresses are read by the host, query strings here.
//
// `call(operation, arguments)` gives `{value}` or throws a helper error.
(call) => {
  'use strict';

  const fault = (reason, message) =>
    Object.assign(new TypeError(message), { kind: 'INVALID_INPUT', reason, helper: 'URL', code: 'ERR_INVALID_URL' });

  // -- Query strings ---------------------------------------------------------

  const encode = (text) => encodeURIComponent(text.toWellFormed())
    .replace(/[!'()~]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
    .replace(/%20/g, '+');

  const decode = (text) => {
    const raw = text.replace(/\+/g, ' ');
    if (!raw.includes('%')) return raw;
    try { return decodeURIComponent(raw.replace(/%(?![0-9a-fA-F]{2})/g, '%25')); } catch { return decodeLossy(raw); }
  };

  // Bytes that are no UTF-8 become U+FFFD, one for each run that could have
  // been a letter.
  const decodeLossy = (raw) => raw.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) => {
    const bytes = run.slice(1).split('%').map((hex) => parseInt(hex, 16));
    let out = '';
    for (let i = 0; i < bytes.length;) {
      const first = bytes[i];
      const size = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
      let length = 1;
      while (length < size && bytes[i + length] >= 0x80 && bytes[i + length] < 0xc0) length++;
      const part = bytes.slice(i, i + length).map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
      let letter = '\ufffd';
      if (size && length === size) { try { letter = decodeURIComponent(part); } catch { /* A surrogate or too long a form. */ } }
      out += letter;
      i += length;
    }
    return out;
  });

  const readQuery = (raw) => raw.split('&').filter((pair) => pair !== '').map((pair) => {
    const at = pair.indexOf('=');
    return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
  });

  const text = (raw) => String(raw).toWellFormed();

  // Called with the new query string whenever the pairs change.
  const watchers = new WeakMap();

  class URLSearchParams {
    #pairs = [];

    constructor(init = '') {
      if (init === null || typeof init !== 'object') this.#pairs = readQuery(text(init ?? '').replace(/^\?/, ''));
      else if (typeof init[Symbol.iterator] === 'function') {
        for (const pair of init) {
          const both = Array.from(pair);
          if (both.length !== 2) throw new TypeError('each pair must be a name and a value');
          this.#pairs.push([text(both[0]), text(both[1])]);
        }
      } else for (const [name, value] of Object.entries(init)) this.#pairs.push([text(name), text(value)]);
    }

    #changed() { watchers.get(this)?.(this.toString()); }

    // Takes what another wrote to the query, without telling it back.
    static refresh(params, raw) { params.#pairs = readQuery(raw); }

    get size() { return this.#pairs.length; }
    append(name, value) { this.#pairs.push([text(name), text(value)]); this.#changed(); }
    delete(name, value) {
      const wanted = text(name);
      this.#pairs = this.#pairs.filter(([own, held]) => own !== wanted || (value !== undefined && held !== text(value)));
      this.#changed();
    }
    get(name) { const wanted = text(name); return this.#pairs.find(([own]) => own === wanted)?.[1] ?? null; }
    getAll(name) { const wanted = text(name); return this.#pairs.filter(([own]) => own === wanted).map(([, value]) => value); }
    has(name, value) { const wanted = text(name); return this.#pairs.some(([own, held]) => own === wanted && (value === undefined || held === text(value))); }
    set(name, value) {
      const wanted = text(name);
      const at = this.#pairs.findIndex(([own]) => own === wanted);
      if (at < 0) this.#pairs.push([wanted, text(value)]);
      else {
        this.#pairs[at] = [wanted, text(value)];
        this.#pairs = this.#pairs.filter(([own], index) => index <= at || own !== wanted);
      }
      this.#changed();
    }
    sort() { this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(); }
    forEach(callback, self) { for (const [name, value] of this) callback.call(self, value, name, this); }
    *entries() { for (let i = 0; i < this.#pairs.length; i++) yield [this.#pairs[i][0], this.#pairs[i][1]]; }
    *keys() { for (const [name] of this.entries()) yield name; }
    *values() { for (const [, value] of this.entries()) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&'); }
    get [Symbol.toStringTag]() { return 'URLSearchParams'; }
  }
  const { refresh } = URLSearchParams;
  delete URLSearchParams.refresh;

  // -- Addresses -------------------------------------------------------------

  const PARTS = ['protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];

  const parse = (input, base) => call('url.parse', { input: text(input), base: base === undefined ? null : text(base) }).value;

  class URL {
    #parts;
    #params;

    constructor(...rest) {
      const [input, base] = rest;
      if (rest.length === 0) throw fault('missing-input', 'a URL needs an input');
      const parts = parse(input, base);
      if (parts === null) throw fault('invalid-url', `Invalid URL: \`${text(input).slice(0, 200)}\``);
      this.#parts = parts;
      this.#params = new URLSearchParams(parts.search);
      watchers.set(this.#params, (query) => this.#set('search', query, true));
    }

    #set(name, value, fromParams = false) {
      const parts = call('url.set', { href: this.#parts.href, name, value: text(value) }).value;
      if (parts === null) throw fault('invalid-url', `Invalid URL: \`${text(value).slice(0, 200)}\``);
      this.#parts = parts;
      if (!fromParams && (name === 'search' || name === 'href')) refresh(this.#params, parts.search.replace(/^\?/, ''));
    }

    static part(url, name) { return url.#parts[name]; }
    static change(url, name, value) { url.#set(name, value); }

    static canParse(input, base) { return parse(input, base) !== null; }
    static parse(input, base) { return parse(input, base) === null ? null : new URL(input, base); }

    get href() { return this.#parts.href; }
    set href(value) { this.#set('href', value); }
    get origin() { return this.#parts.origin; }
    get searchParams() { return this.#params; }
    toString() { return this.#parts.href; }
    toJSON() { return this.#parts.href; }
    get [Symbol.toStringTag]() { return 'URL'; }
  }
  const { part, change } = URL;
  delete URL.part;
  delete URL.change;
  for (const name of PARTS) {
    Object.defineProperty(URL.prototype, name, {
      get() { return part(this, name); },
      set(value) { change(this, name, value); },
      enumerable: true,
      configurable: true,
    });
  }

  return { URL, URLSearchParams };
}
