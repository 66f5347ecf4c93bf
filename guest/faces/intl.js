// The face of `Intl`, and the locale-aware methods of Date, Number, BigInt,
// Array and String. Dates and numbers are written by the host, strings are
// compared here: a sort would otherwise be one call for each pair.
//
// `call(operation, arguments)` gives `{value}` or throws a helper error.
(call) => {
  'use strict';

  // The host says `range-error` or `type-error`; scripts expect the real ones.
  const ask = (operation, args) => {
    try {
      return call(operation, args).value;
    } catch (error) {
      const Kind = { 'range-error': RangeError, 'type-error': TypeError }[error?.reason];
      if (!Kind) throw error;
      throw Object.assign(new Kind(error.message), { kind: error.kind, reason: error.reason, helper: error.helper });
    }
  };

  const tag = (raw) => {
    if (typeof raw === 'string') return raw.toWellFormed();
    if (raw !== null && typeof raw === 'object') return String(raw).toWellFormed();
    throw new TypeError('Incorrect locale information provided');
  };
  const tags = (raw) => {
    if (raw === undefined) return null;
    if (raw === null) throw new TypeError('Cannot convert undefined or null to object');
    return Array.isArray(raw) ? raw.map(tag) : tag(raw);
  };

  // Options as plain data, read once, inherited ones too.
  const plain = (raw, names) => {
    const out = {};
    if (raw === undefined) return out;
    if (raw === null) throw new TypeError('Cannot convert undefined or null to object');
    for (const name of names) {
      const value = raw[name];
      if (value === undefined) continue;
      out[name] = typeof value === 'boolean' || typeof value === 'number' ? value : String(value).toWellFormed();
      if (Number.isNaN(value)) throw new RangeError(`${name} value is out of range.`);
    }
    return out;
  };

  // A formatter is often made anew for each value, so the last ones are kept.
  const remember = (make) => {
    const known = new Map();
    return (...key) => {
      const text = JSON.stringify(key);
      if (!known.has(text)) {
        if (known.size >= 32) known.delete(known.keys().next().value);
        known.set(text, make(...key));
      }
      return known.get(text);
    };
  };

  const supportedLocalesOf = (locales) => ask('intl.locale', { locales: tags(locales) ?? [] }).supported;
  const join = (parts) => parts.map(([, value]) => value).join('');
  const objects = (parts) => parts.map(([type, value]) => ({ type, value }));

  // -- Dates -----------------------------------------------------------------

  const DATE_OPTIONS = ['weekday', 'era', 'year', 'month', 'day', 'hour', 'minute', 'second', 'fractionalSecondDigits',
    'timeZoneName', 'hour12', 'hourCycle', 'timeZone', 'dateStyle', 'timeStyle'];

  const resolveDate = remember((locales, options, required, defaults) =>
    ask('intl.dateResolve', { locales, options, required, defaults }));

  const timeOf = (date) => {
    const time = date === undefined ? Date.now() : date instanceof Date ? date.getTime() : Number(date);
    if (!Number.isFinite(time)) throw new RangeError('Invalid time value');
    return time;
  };

  // As in other engines, the narrow space before AM is for `formatToParts` only:
  // too many scripts split at a plain one.
  const dateText = (parts) => join(parts).replace(/\u202f/g, ' ');

  const dateParts = ({ resolved, pattern }, date) => ask('intl.dateFormat', { resolved, pattern, time: timeOf(date) });

  // Called with or without `new`, as the standard has it for these two.
  const callable = (Class) => new Proxy(Class, { apply: (_, self, args) => new Class(...args) });

  class DateTimeFormat {
    #state;
    #format;
    constructor(locales, options) {
      this.#state = resolveDate(tags(locales), plain(options, DATE_OPTIONS), 'any', 'date');
    }
    static supportedLocalesOf(locales) { return supportedLocalesOf(locales); }
    get format() { return this.#format ??= (date) => dateText(dateParts(this.#state, date)); }
    formatToParts(date) { return objects(dateParts(this.#state, date)); }
    formatRange(start, end) {
      const [from, to] = [this.format(start), this.format(end)];
      return from === to ? from : `${from} – ${to}`;
    }
    resolvedOptions() { return { ...this.#state.resolved }; }
    get [Symbol.toStringTag]() { return 'Intl.DateTimeFormat'; }
  }

  const method = (prototype, name, value) => Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
  const dateMethod = (name, required, defaults) => method(Date.prototype, name, {
    [name](locales, options) {
      if (Number.isNaN(this.getTime())) return 'Invalid Date';
      return dateText(dateParts(resolveDate(tags(locales), plain(options, DATE_OPTIONS), required, defaults), this));
    },
  }[name]);
  dateMethod('toLocaleString', 'any', 'all');
  dateMethod('toLocaleDateString', 'date', 'date');
  dateMethod('toLocaleTimeString', 'time', 'time');

  // -- Numbers ---------------------------------------------------------------

  const NUMBER_OPTIONS = ['style', 'currency', 'currencyDisplay', 'currencySign', 'unit', 'unitDisplay', 'notation', 'compactDisplay',
    'minimumIntegerDigits', 'minimumFractionDigits', 'maximumFractionDigits', 'minimumSignificantDigits', 'maximumSignificantDigits',
    'useGrouping', 'signDisplay', 'roundingMode', 'trailingZeroDisplay'];

  const resolveNumber = remember((locales, options) => ask('intl.numberResolve', { locales, options }));

  const numberText = (raw) => {
    if (typeof raw === 'bigint') return String(raw);
    // A decimal in a string keeps the digits a number would lose.
    if (typeof raw === 'string' && /^[+-]?\d+(\.\d*)?$/.test(raw.trim())) return raw.trim();
    const number = Number(raw);
    return Object.is(number, -0) ? '-0' : String(number);
  };
  const numberParts = (resolved, value) => ask('intl.numberFormat', { resolved, value: numberText(value) });

  class NumberFormat {
    #resolved;
    #format;
    constructor(locales, options) { this.#resolved = resolveNumber(tags(locales), plain(options, NUMBER_OPTIONS)); }
    static supportedLocalesOf(locales) { return supportedLocalesOf(locales); }
    get format() { return this.#format ??= (value) => join(numberParts(this.#resolved, value)); }
    formatToParts(value) { return objects(numberParts(this.#resolved, value)); }
    resolvedOptions() { return { ...this.#resolved }; }
    get [Symbol.toStringTag]() { return 'Intl.NumberFormat'; }
  }

  const numberMethod = {
    toLocaleString(locales, options) {
      return join(numberParts(resolveNumber(tags(locales), plain(options, NUMBER_OPTIONS)), this.valueOf()));
    },
  }.toLocaleString;
  method(Number.prototype, 'toLocaleString', numberMethod);
  method(BigInt.prototype, 'toLocaleString', numberMethod);

  // -- Order -----------------------------------------------------------------

  // The order of Unicode's root collation as far as ASCII goes; what is not in
  // it comes behind, by code point, letters with their accents taken off.
  const MARKS = '_-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$';
  const primary = new Map([...'\t\n\v\f\r\u0085\u2028\u2029 '].map((mark, index) => [mark, index + 1]));
  [...MARKS].forEach((mark, index) => primary.set(mark, 100 + index));
  [...'0123456789'].forEach((mark, index) => primary.set(mark, 200 + index));
  [...'abcdefghijklmnopqrstuvwxyz'].forEach((mark, index) => primary.set(mark, 300 + 10 * index));
  primary.set('\u00fe', 300 + 10 * 25 + 5);
  const EXPAND = { '\u00df': 'ss', '\u00e6': 'ae', '\u0153': 'oe', '\u00f8': 'o\u0338', '\u0111': 'd\u0335', '\u0142': 'l\u0335', '\u00f0': 'd\u0336', '\u0131': 'i' };
  const TAILORED = {
    es: [['n\u0303', 300 + 10 * 13 + 5]],
    sv: [['a\u030a', 300 + 10 * 25 + 6], ['a\u0308', 300 + 10 * 25 + 7], ['o\u0308', 300 + 10 * 25 + 8]],
  };
  const ACCENT = /[\u0300-\u036f]/;

  // For each letter: where it stands, its accents, whether it is a capital.
  const keys = (text, language, numeric) => {
    const out = [];
    const tailored = TAILORED[language] ?? [];
    const decomposed = text.normalize('NFD');
    for (let i = 0; i < decomposed.length;) {
      if (numeric && decomposed[i] >= '0' && decomposed[i] <= '9') {
        let end = i;
        while (decomposed[end] >= '0' && decomposed[end] <= '9') end++;
        const digits = decomposed.slice(i, end).replace(/^0+(?=\d)/, '');
        out.push([209 + digits.length / 1e6, '', 0, digits]);
        i = end;
        continue;
      }
      const letter = String.fromCodePoint(decomposed.codePointAt(i));
      i += letter.length;
      const lower = letter.toLowerCase();
      const isUpper = lower !== letter ? 1 : 0;
      let accents = '';
      while (i < decomposed.length && ACCENT.test(decomposed[i])) accents += decomposed[i++];
      const special = tailored.find(([form]) => lower + accents === form);
      if (special) { out.push([special[1], '', isUpper, '']); continue; }
      if (ACCENT.test(letter)) { if (out.length) out[out.length - 1][1] += letter; continue; }
      for (const [index, base] of [...(EXPAND[lower] ?? lower)].entries()) {
        if (ACCENT.test(base)) { out[out.length - 1][1] += base; continue; }
        const weight = primary.get(base) ?? 1000 + base.codePointAt(0);
        out.push([weight, index === 0 ? accents : EXPAND[lower] ? '\u0001' : '', isUpper, '']);
      }
    }
    return out;
  };

  const compareKeys = (a, b, { sensitivity, caseFirst, ignorePunctuation }) => {
    if (ignorePunctuation) [a, b] = [a, b].map((list) => list.filter(([weight]) => weight >= 200));
    const length = Math.min(a.length, b.length);
    for (let i = 0; i < length; i++) {
      if (a[i][0] !== b[i][0]) return a[i][0] < b[i][0] ? -1 : 1;
      if (a[i][3] !== b[i][3]) return a[i][3] < b[i][3] ? -1 : 1;
    }
    if (a.length !== b.length) return a.length < b.length ? -1 : 1;
    if (sensitivity === 'accent' || sensitivity === 'variant') {
      for (let i = 0; i < length; i++) if (a[i][1] !== b[i][1]) return a[i][1] < b[i][1] ? -1 : 1;
    }
    if (sensitivity === 'case' || sensitivity === 'variant') {
      const first = caseFirst === 'upper' ? -1 : 1;
      for (let i = 0; i < length; i++) if (a[i][2] !== b[i][2]) return a[i][2] < b[i][2] ? -first : first;
    }
    return 0;
  };

  const oneOf = (options, name, words, fallback) => {
    const value = options?.[name];
    if (value === undefined) return fallback;
    if (!words.includes(String(value))) throw new RangeError(`Value ${String(value)} out of range for Intl.Collator options property ${name}`);
    return String(value);
  };

  const resolveLocale = remember((locales) => ask('intl.locale', { locales: locales ?? [] }).locale);

  class Collator {
    #resolved;
    #compare;
    constructor(locales, options) {
      const list = tags(locales);
      const extension = /-u(?:-[a-z0-9]+)*?-kn(?:-(?!false)|$)/i.test(Array.isArray(list) ? list[0] ?? '' : list ?? '');
      this.#resolved = {
        locale: resolveLocale(list),
        usage: oneOf(options, 'usage', ['sort', 'search'], 'sort'),
        sensitivity: oneOf(options, 'sensitivity', ['base', 'accent', 'case', 'variant'], 'variant'),
        ignorePunctuation: Boolean(options?.ignorePunctuation),
        collation: 'default',
        numeric: options?.numeric === undefined ? extension : Boolean(options.numeric),
        caseFirst: oneOf(options, 'caseFirst', ['upper', 'lower', 'false'], 'false'),
      };
    }
    static supportedLocalesOf(locales) { return supportedLocalesOf(locales); }
    get compare() {
      return this.#compare ??= (a, b) => {
        const [left, right] = [String(a), String(b)];
        if (left === right) return 0;
        const language = this.#resolved.locale.slice(0, 2);
        return compareKeys(keys(left, language, this.#resolved.numeric), keys(right, language, this.#resolved.numeric), this.#resolved);
      };
    }
    resolvedOptions() { return { ...this.#resolved }; }
    get [Symbol.toStringTag]() { return 'Intl.Collator'; }
  }

  let plainCollator;
  const localeCompare = {
    localeCompare(other, locales, options) {
      if (this === undefined || this === null) throw new TypeError('String.prototype.localeCompare called on null or undefined');
      if (locales === undefined && options === undefined) return (plainCollator ??= new Collator()).compare(String(this), String(other));
      return new Collator(locales, options).compare(String(this), String(other));
    },
  }.localeCompare;
  method(String.prototype, 'localeCompare', localeCompare);

  // -- Plurals and lists, in the little that most need -----------------------

  class PluralRules {
    #locale;
    #type;
    constructor(locales, options) {
      this.#locale = resolveLocale(tags(locales));
      this.#type = oneOf(options, 'type', ['cardinal', 'ordinal'], 'cardinal');
    }
    static supportedLocalesOf(locales) { return supportedLocalesOf(locales); }
    select(raw) {
      const number = Math.abs(Number(raw));
      const language = this.#locale.slice(0, 2);
      if (this.#type === 'ordinal') {
        if (language === 'fr') return number === 1 ? 'one' : 'other';
        if (language === 'sv') return [1, 2].includes(number % 10) && ![11, 12].includes(number % 100) ? 'one' : 'other';
        if (language !== 'en') return 'other';
        if ([11, 12, 13].includes(number % 100)) return 'other';
        return { 1: 'one', 2: 'two', 3: 'few' }[number % 10] ?? 'other';
      }
      if (['ja', 'ko', 'zh'].includes(language)) return 'other';
      const isMany = ['fr', 'es'].includes(language) && number !== 0 && number % 1e6 === 0;
      if (isMany) return 'many';
      return number === 1 || (language === 'fr' && number < 2) ? 'one' : 'other';
    }
    resolvedOptions() { return { locale: this.#locale, type: this.#type }; }
    get [Symbol.toStringTag]() { return 'Intl.PluralRules'; }
  }

  method(Array.prototype, 'toLocaleString', {
    toLocaleString(locales, options) {
      return Array.from(this, (item) => (item === undefined || item === null ? '' : item.toLocaleString(locales, options))).join(',');
    },
  }.toLocaleString);

  const Intl = {};
  const add = (name, value) => Object.defineProperty(Intl, name, { value, writable: true, configurable: true });
  const DateTimeFormatCallable = callable(DateTimeFormat);
  const NumberFormatCallable = callable(NumberFormat);
  const CollatorCallable = callable(Collator);
  DateTimeFormat.prototype.constructor = DateTimeFormatCallable;
  NumberFormat.prototype.constructor = NumberFormatCallable;
  Collator.prototype.constructor = CollatorCallable;
  add('DateTimeFormat', DateTimeFormatCallable);
  add('NumberFormat', NumberFormatCallable);
  add('Collator', CollatorCallable);
  add('PluralRules', PluralRules);
  add('getCanonicalLocales', (locales) => ask('intl.locale', { locales: tags(locales) ?? [] }).canonical);
  add('supportedValuesOf', (key) => {
    if (key === 'timeZone') return ask('intl.zones', {});
    if (['calendar', 'collation', 'currency', 'numberingSystem', 'unit'].includes(key)) return { calendar: ['gregory'], numberingSystem: ['latn'] }[key] ?? [];
    throw new RangeError(`Invalid key : ${String(key)}`);
  });
  Object.defineProperty(Intl, Symbol.toStringTag, { value: 'Intl', configurable: true });

  return { Intl };
}
