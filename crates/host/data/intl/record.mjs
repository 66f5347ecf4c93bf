// Records what Unicode's locale data says, as a JavaScript engine shows it. Needed
// only when locales are added or that data changes; the outcome is committed. The
// data is Unicode's (CLDR), under the Unicode License v3.
//
//     node record.mjs      writes <locale>.json, zones.json, currencies.json here
import { writeFileSync, readFileSync } from 'node:fs';

const LOCALES = ['en-US', 'en-GB', 'en-CA', 'de-DE', 'fr-FR', 'es-ES', 'ja-JP', 'ko-KR', 'zh-CN', 'sv-SE'];
const here = new URL('.', import.meta.url);
const U = 'UTC';
const at = (...a) => new Date(Date.UTC(...a));
const PROBE = at(2024, 2, 5, 7, 4, 9, 123);
const parts = (locale, options, date = PROBE) => new Intl.DateTimeFormat(locale, { timeZone: U, ...options }).formatToParts(date);
const clean = (o) => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined));

const WEEKDAY = { '-': undefined, N: 'narrow', s: 'short', l: 'long' };
const YEAR = { '-': undefined, n: 'numeric', 2: '2-digit' };
const MONTH = { '-': undefined, n: 'numeric', 2: '2-digit', N: 'narrow', s: 'short', l: 'long' };
const DAY = YEAR;
const ERA = { '-': undefined, G: 'short' };

const intern = (list, value) => {
  const text = JSON.stringify(value);
  const found = list.findIndex((own) => JSON.stringify(own) === text);
  return found >= 0 ? found : list.push(value) - 1;
};

const pattern = (locale, options, lists) => {
  const find = (date, index) => parts(locale, options, date)[index].value;
  return parts(locale, options).map(({ type, value }, index) => {
    const digits = /^\d+$/.test(value);
    switch (type) {
      case 'literal': return value;
      case 'year': return value.length === 2 ? '{yy}' : '{y}';
      case 'month': {
        if (digits) return value.length === 2 ? '{MM}' : '{M}';
        const names = Array.from({ length: 12 }, (_, m) => find(at(2024, m, 5, 7, 4, 9), index));
        return `{L${intern(lists.months, names)}}`;
      }
      case 'day': return value.length === 2 ? '{dd}' : '{d}';
      case 'weekday': return `{E${intern(lists.weekdays, Array.from({ length: 7 }, (_, d) => find(at(2024, 2, 3 + d, 7, 4, 9), index)))}}`;
      case 'era': return '{G}';
      case 'hour': return value.length === 2 ? '{hh}' : '{h}';
      case 'minute': return value.length === 2 ? '{mm}' : '{m}';
      case 'second': return value.length === 2 ? '{ss}' : '{s}';
      case 'dayPeriod': return `{a${intern(lists.periods, Array.from({ length: 24 }, (_, h) => find(at(2024, 2, 5, h, 4, 9), index)))}}`;
      case 'fractionalSecond': return '{S}';
      case 'timeZoneName': return '{z}';
      default: throw new Error(`${locale} ${type}`);
    }
  }).join('');
};

const dates = (locale) => {
  const data = { months: [], weekdays: [], periods: [], eras: {}, hourCycles: {}, date: {}, time: {}, dateStyle: {}, timeStyle: {}, glue: {} };
  const cycle = (o) => new Intl.DateTimeFormat(locale, { hour: 'numeric', ...o }).resolvedOptions().hourCycle;
  data.hourCycles = { own: cycle({}), yes: cycle({ hour12: true }), no: cycle({ hour12: false }) };
  for (const width of ['narrow', 'short', 'long']) {
    const era = (date) => parts(locale, { era: width, year: 'numeric' }, date).find((part) => part.type === 'era').value;
    data.eras[width] = [era(at(-100, 2, 5)), era(PROBE)];
  }
  for (const [g, era] of Object.entries(ERA)) for (const [w, weekday] of Object.entries(WEEKDAY)) for (const [y, year] of Object.entries(YEAR))
    for (const [m, month] of Object.entries(MONTH)) for (const [d, day] of Object.entries(DAY)) {
      const key = `${g}${w}${y}${m}${d}`;
      if (key === '-----' || (g === 'G' && y === '-')) continue;
      data.date[key] = pattern(locale, clean({ era, weekday, year, month, day }), data);
    }
  for (const [h, hour] of Object.entries(YEAR)) for (const [m, minute] of Object.entries(YEAR)) for (const [s, second] of Object.entries(YEAR))
    for (const f of ['-', 'S']) for (const z of ['-', 'z']) for (const hc of h === '-' ? ['h23'] : ['h12', 'h23']) {
      if (h + m + s + f + z === '-----') continue;
      // Alone, a zone brings a date with it, which is another pattern.
      if (h + m + s + f + z === '----z') { data.time['----z'] = '{z}'; continue; }
      const options = { hour, minute, second, fractionalSecondDigits: f === 'S' ? 3 : undefined, timeZoneName: z === 'z' ? 'short' : undefined, hourCycle: hour ? hc : undefined };
      data.time[`${h}${m}${s}${f}${z}${h === '-' ? '' : hc === 'h12' ? 'a' : 'H'}`] = pattern(locale, clean(options), data);
    }
  for (const style of ['full', 'long', 'medium', 'short']) {
    data.dateStyle[style] = pattern(locale, { dateStyle: style }, data);
    data.timeStyle[style] = { a: pattern(locale, { timeStyle: style, hourCycle: 'h12' }, data), H: pattern(locale, { timeStyle: style, hourCycle: 'h23' }, data) };
  }
  const glue = (options, date, time) => {
    const all = pattern(locale, { hourCycle: 'h23', ...options }, data);
    if (!all.startsWith(date) || !all.endsWith(time)) throw new Error(`${locale} ${all} | ${date} | ${time}`);
    return all.slice(date.length, all.length - time.length);
  };
  const hm = { hour: 'numeric', minute: 'numeric' };
  const time = data.time['nn---H'];
  data.glue = {
    full: glue({ weekday: 'long', year: 'numeric', month: 'long', day: 'numeric', ...hm }, data.date['-lnln'], time),
    long: glue({ year: 'numeric', month: 'long', day: 'numeric', ...hm }, data.date['--nln'], time),
    medium: glue({ year: 'numeric', month: 'short', day: 'numeric', ...hm }, data.date['--nsn'], time),
    short: glue({ year: 'numeric', month: 'numeric', day: 'numeric', ...hm }, data.date['--nnn'], time),
    // A weekday and a time, where `{*}` stands for the time.
    weekday: Object.fromEntries(Object.entries(WEEKDAY).filter(([, weekday]) => weekday).map(([w, weekday]) => {
      const all = pattern(locale, { hourCycle: 'h23', weekday, ...hm }, data);
      if (!all.includes(time)) throw new Error(`${locale} ${all}`);
      return [w, all.replace(time, '{*}')];
    })),
    styles: Object.fromEntries(['full', 'long', 'medium', 'short'].map((style) => [style, glue({ dateStyle: style, timeStyle: 'short' }, data.dateStyle[style], data.timeStyle.short.H)])),
  };
  const gmt = parts(locale, { timeZoneName: 'shortOffset', hour: 'numeric', timeZone: 'Asia/Tokyo' }).find((part) => part.type === 'timeZoneName').value;
  data.gmt = gmt.replace(/[+\u2212-].*$/, '');
  data.gmtMinus = parts(locale, { timeZoneName: 'shortOffset', hour: 'numeric', timeZone: 'America/Lima' }).find((part) => part.type === 'timeZoneName').value.replace(data.gmt, '').replace(/\d+/, '');
  return data;
};

// -- Numbers -----------------------------------------------------------------

const CODES = ['USD', 'EUR', 'GBP', 'JPY', 'CNY', 'KRW', 'INR', 'CAD', 'AUD', 'NZD', 'CHF', 'SEK', 'NOK', 'DKK', 'PLN', 'CZK', 'HUF', 'RUB', 'TRY', 'BRL', 'MXN', 'ARS', 'CLP', 'COP', 'ZAR', 'ILS', 'AED', 'SAR', 'SGD', 'HKD', 'TWD', 'THB', 'VND', 'IDR', 'MYR', 'PHP', 'UAH', 'EGP', 'NGN', 'KWD'];
const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte', 'bit', 'celsius', 'fahrenheit', 'percent', 'kilometer', 'meter', 'centimeter', 'millimeter', 'mile', 'foot', 'inch', 'kilogram', 'gram', 'pound', 'ounce', 'liter', 'milliliter', 'millisecond', 'second', 'minute', 'hour', 'day', 'week', 'month', 'year', 'kilometer-per-hour', 'mile-per-hour', 'degree'];
const numberParts = (locale, options, value) => new Intl.NumberFormat(locale, options).formatToParts(value);
// What stands before and after the digits.
const around = (all) => {
  const isDigit = ({ type }) => ['integer', 'group', 'decimal', 'fraction'].includes(type);
  const first = all.findIndex(isDigit);
  const last = all.findLastIndex(isDigit);
  const text = (some) => some.map(({ type, value }) => (type === 'currency' ? '\u00a4' : type === 'minusSign' ? '-' : value)).join('');
  return [text(all.slice(0, first)), text(all.slice(last + 1))];
};

const numbers = (locale) => {
  const find = (type, options, value) => numberParts(locale, options, value).find((part) => part.type === type)?.value;
  const data = {
    decimal: find('decimal', {}, 1.5), group: find('group', {}, 1234567), minus: find('minusSign', {}, -1), plus: find('plusSign', { signDisplay: 'always' }, 1),
    groupingMin: find('group', {}, 1234) ? 1 : 2,
    infinity: find('infinity', {}, Infinity), nan: find('nan', {}, NaN),
    percent: around(numberParts(locale, { style: 'percent' }, 0.5)),
    currency: around(numberParts(locale, { style: 'currency', currency: 'USD' }, 5)),
    currencyCode: around(numberParts(locale, { style: 'currency', currency: 'USD', currencyDisplay: 'code' }, 5)),
    currencyNegative: around(numberParts(locale, { style: 'currency', currency: 'USD' }, -5)),
    accounting: around(numberParts(locale, { style: 'currency', currency: 'USD', currencySign: 'accounting' }, -5)),
    currencies: {}, compact: { short: [], long: [] }, units: {},
  };
  for (const currency of CODES) {
    const symbol = (currencyDisplay) => find('currency', { style: 'currency', currency, currencyDisplay }, 5);
    const name = (value) => find('currency', { style: 'currency', currency, currencyDisplay: 'name', maximumFractionDigits: 0 }, value);
    data.currencies[currency] = [symbol('symbol'), symbol('narrowSymbol'), name(1), name(5)];
  }
  data.currencyName = around(numberParts(locale, { style: 'currency', currency: 'USD', currencyDisplay: 'name' }, 5));
  for (const display of ['short', 'long']) for (let power = 0; power < 15; power++) {
    const parted = (digit) => numberParts(locale, { notation: 'compact', compactDisplay: display, useGrouping: false }, digit * 10 ** power);
    const whole = (all) => all.find(({ type }) => type === 'integer')?.value;
    const many = parted(2);
    // A word can stand for the number too, as in `mille`; then one and a bit
    // shows the form for one.
    const isAlone = whole(parted(1)) === undefined;
    const alone = isAlone ? parted(1).map(({ value }) => value).join('') : null;
    const [before, after] = around(many);
    const [beforeOne, afterOne] = around(parted(isAlone ? 1.2 : 1));
    const zeros = whole(many).length - 1;
    data.compact[display].push([power - zeros, before, after, beforeOne, afterOne, alone]);
  }
  for (const unit of UNITS) data.units[unit] = Object.fromEntries(['short', 'narrow', 'long'].map((unitDisplay) => {
    const form = (value) => around(numberParts(locale, { style: 'unit', unit, unitDisplay }, value));
    return [unitDisplay, [...form(2), ...form(1)]];
  }));
  return data;
};

// -- Zones -------------------------------------------------------------------

const NAMES = Object.keys(JSON.parse(readFileSync(new URL('zones.json', here), 'utf8')).zones);
const WINTER = at(2024, 0, 15, 12);
const SUMMER = at(2024, 6, 15, 12);
const zonePart = (locale, zone, timeZoneName, date) => parts(locale, { timeZone: zone, timeZoneName, hour: 'numeric' }, date).find((part) => part.type === 'timeZoneName').value;
const offset = (zone, date) => {
  const found = /^GMT(?:([+-])(\d+)(?::(\d+))?)?$/.exec(zonePart('en-US', zone, 'shortOffset', date));
  return found[1] ? (found[1] === '-' ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3] ?? 0)) : 0;
};
const zones = () => {
  const groups = new Map();
  const index = {};
  for (const zone of NAMES) {
    const [winter, summer] = [offset(zone, WINTER), offset(zone, SUMMER)];
    const standard = Math.min(winter, summer);
    const [quiet, light] = winter <= summer ? [WINTER, SUMMER] : [SUMMER, WINTER];
    const names = LOCALES.map((locale) => [['short', quiet], ['short', light], ['long', quiet], ['long', light], ['shortGeneric', quiet], ['longGeneric', quiet]].map(([width, date]) => {
      const name = zonePart(locale, zone, width, date);
      const plain = [zonePart(locale, zone, 'shortOffset', date), zonePart(locale, zone, 'longOffset', date)];
      return plain.includes(name) ? null : name;
    }));
    const key = JSON.stringify([standard, Math.max(winter, summer), names]);
    if (!groups.has(key)) groups.set(key, groups.size);
    index[zone] = groups.get(key);
  }
  return { index, groups: [...groups.keys()].map((key) => JSON.parse(key)) };
};

const write = (name, value) => writeFileSync(new URL(name, here), value);
// One entry a line, so that a change can be read.
const lines = (value, depth = 0) => {
  if (depth === 2 || value === null || typeof value !== 'object') return JSON.stringify(value);
  const pad = ' '.repeat(depth + 1);
  const all = Array.isArray(value) ? value.map((own) => pad + lines(own, depth + 1)) : Object.entries(value).map(([key, own]) => `${pad}${JSON.stringify(key)}: ${lines(own, depth + 1)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${all.join(',\n')}\n${' '.repeat(depth)}${close}`;
};

const { index, groups } = zones();
write('zones.json', `${lines({ zones: index, offsets: groups.map(([standard, light]) => [standard, light]) })}\n`);
LOCALES.forEach((locale, at) => {
  write(`${locale}.json`, `${lines({ locale, dates: dates(locale), numbers: numbers(locale), zones: groups.map(([, , names]) => names[at]) })}\n`);
});
const digits = {};
for (const currency of Intl.supportedValuesOf('currency')) {
  const count = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits;
  if (count !== 2) digits[currency] = count;
}
write('currencies.json', `${lines(digits)}\n`);
