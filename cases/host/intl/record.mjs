// Records how another engine formats, for the tests to compare with. Needed only
// when a case is added; the tests read the outcome.
//
//     node record.mjs      writes dates.json, numbers.json and order.json here
import { writeFileSync } from 'node:fs';

const here = new URL('.', import.meta.url);
const write = (name, rows) => writeFileSync(new URL(name, here), `[\n${rows.map((row) => ` ${JSON.stringify(row)}`).join(',\n')}\n]\n`);
const LOCALES = ['en-US', 'en-GB', 'en-CA', 'de-DE', 'fr-FR', 'es-ES', 'ja-JP', 'ko-KR', 'zh-CN', 'sv-SE'];

// The same numbers in every run.
let seed = 7;
const random = (count) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % count; };
const pick = (list) => list[random(list.length)];

// -- Dates: [locale, options, time, text, parts?] -------------------------------

const N = 'numeric';
const D = '2-digit';
const day = { year: N, month: N, day: N };
const SETS = [
  {}, { timeZone: 'America/New_York' }, { dateStyle: 'full' }, { dateStyle: 'long' }, { dateStyle: 'medium' }, { dateStyle: 'short' },
  { timeStyle: 'full', timeZone: 'Europe/Berlin' }, { timeStyle: 'long' }, { timeStyle: 'medium' }, { timeStyle: 'short' },
  { dateStyle: 'full', timeStyle: 'full', timeZone: 'Asia/Tokyo' }, { dateStyle: 'long', timeStyle: 'short' }, { dateStyle: 'medium', timeStyle: 'medium' }, { dateStyle: 'short', timeStyle: 'short', hour12: false },
  { ...day, hour: N, minute: N, second: N }, { ...day, hour: D, minute: D, second: D, hour12: false }, { ...day, hour: D, minute: D, hourCycle: 'h23' },
  { year: N, month: D, day: D, hour: D, minute: D, second: D, fractionalSecondDigits: 3, weekday: 'short', hour12: false, timeZone: 'Asia/Seoul' },
  { year: N, month: 'long', day: N }, { weekday: 'long', year: N, month: 'long', day: N }, { month: 'short', day: N }, { year: N, month: 'short' }, { weekday: 'short' }, { weekday: 'long', hour: N, minute: N },
  { weekday: 'short', year: N, month: 'short', day: N, hour: N, minute: N }, { weekday: 'long', month: 'long', day: N, hour: N, minute: D, timeZoneName: 'short', timeZone: 'America/Los_Angeles' },
  { hour: N }, { hour: N, hour12: true }, { hour: D, hour12: false }, { hour: N, minute: N, timeZone: 'Australia/Sydney', timeZoneName: 'long' },
  { minute: N, second: N }, { hour: N, minute: N, second: N, fractionalSecondDigits: 2 }, { era: 'short', year: N, month: 'long', day: N }, { year: D, month: D, day: D }, { month: 'narrow' },
  { timeZoneName: 'shortOffset', timeZone: 'Asia/Kolkata' }, { timeZoneName: 'longOffset', timeZone: 'America/St_Johns', hour: N }, { timeZoneName: 'shortGeneric', timeZone: 'America/Chicago', hour: N }, { timeZoneName: 'longGeneric', timeZone: 'Europe/London', hour: N },
  { hour: N, minute: N, hourCycle: 'h11' }, { hour: N, minute: N, hourCycle: 'h24' },
];
const TIMES = [Date.UTC(2024, 0, 1, 0, 0, 0, 0), Date.UTC(2024, 2, 5, 7, 4, 9, 123), Date.UTC(2025, 6, 31, 12, 30, 0, 5), Date.UTC(1999, 11, 31, 23, 59, 59, 999)];

const ZONES = ['UTC', 'America/New_York', 'Europe/London', 'Asia/Kathmandu', 'Pacific/Apia', 'America/Sao_Paulo', 'Africa/Cairo', 'Europe/Dublin', 'Asia/Tehran', 'Australia/Lord_Howe'];
const date = (locale, options, time, withParts) => {
  const format = new Intl.DateTimeFormat(locale, { timeZone: 'UTC', ...options });
  const row = [locale, { timeZone: 'UTC', ...options }, time, format.format(time)];
  return withParts ? [...row, format.formatToParts(time).map(({ type, value }) => [type, value])] : row;
};
const dates = [];
for (const locale of LOCALES) SETS.forEach((options, index) => dates.push(date(locale, options, TIMES[index % TIMES.length], index % 8 === 1 || index === 17)));
for (const options of SETS.slice(0, 30)) dates.push(date('en-US', options, pick(TIMES), false));
for (const timeZone of ZONES) for (const timeZoneName of ['short', 'long']) for (const time of [TIMES[1], TIMES[2]]) dates.push(date('en-US', { dateStyle: undefined, hour: N, minute: N, timeZone, timeZoneName }, time, false));
// Moments around the edges of summer time, and years far away.
for (const [timeZone, time] of [['Europe/Berlin', Date.UTC(2024, 2, 31, 0, 59, 59)], ['Europe/Berlin', Date.UTC(2024, 2, 31, 1)], ['America/New_York', Date.UTC(2024, 10, 3, 5, 30)], ['America/New_York', Date.UTC(2024, 10, 3, 6, 30)], ['Asia/Tokyo', 0], ['America/New_York', -1], ['UTC', Date.UTC(-1, 5, 1)], ['UTC', 8.64e15], ['UTC', -8.64e15], ['America/New_York', Date.UTC(1880, 0, 1)]]) {
  dates.push(date('en-US', { timeZone, ...day, hour: N, minute: N, second: N, era: 'short' }, time, false));
}
const random4 = (list) => pick([undefined, undefined, ...list]);
for (let i = 0; i < 400; i++) {
  const options = Object.fromEntries(Object.entries({
    weekday: random4(['short', 'long']), year: random4([N, D]), month: random4([N, D, 'short', 'long']), day: random4([N, D]),
    hour: random4([N, D]), minute: random4([N, D]), second: random4([N, D]), hour12: random4([true, false]), timeZone: pick(ZONES),
  }).filter(([, value]) => value !== undefined));
  // Hours and seconds without minutes are written differently by hour cycle,
  // and asked for by nobody.
  if (options.hour && options.second) options.minute ??= N;
  dates.push(date(pick(LOCALES), options, pick(TIMES), false));
}
write('dates.json', dates);

// -- Numbers: [locale, options, number as text, text, parts?] --------------------

const NUMBERS = [
  [{}, ['0', '-0', '1', '-1', '1234.5678', '1234567.891', '0.0005', '1e21', '-9876.5', 'NaN', 'Infinity', '-Infinity', '1000', '12345']],
  [{ minimumFractionDigits: 2 }, ['1', '1234.5', '1.005']], [{ maximumFractionDigits: 0 }, ['0.5', '1.5', '2.5', '-2.5']], [{ maximumFractionDigits: 2 }, ['1.005', '1.115', '8.345']],
  [{ style: 'percent' }, ['0.256', '1', '-0.5']], [{ style: 'percent', maximumFractionDigits: 1 }, ['0.2567']],
  [{ style: 'currency', currency: 'USD' }, ['1234.5', '-1234.5', '0']], [{ style: 'currency', currency: 'EUR' }, ['1234.5', '-3']], [{ style: 'currency', currency: 'JPY' }, ['1234.5']],
  [{ style: 'currency', currency: 'CHF' }, ['5', '-5']], [{ style: 'currency', currency: 'USD', currencyDisplay: 'code' }, ['5.5', '-5.5']], [{ style: 'currency', currency: 'USD', currencyDisplay: 'name' }, ['5', '1']],
  [{ style: 'currency', currency: 'USD', currencySign: 'accounting' }, ['-5']], [{ style: 'currency', currency: 'GBP', minimumFractionDigits: 0 }, ['1234', '1234.5']],
  [{ useGrouping: false }, ['1234567']], [{ minimumIntegerDigits: 3 }, ['7']], [{ maximumSignificantDigits: 3 }, ['123456', '0.00123456', '1.5']], [{ minimumSignificantDigits: 4 }, ['1.5', '0', '0.05']],
  [{ notation: 'compact' }, ['5', '999', '1234', '12345', '999999', '1500000', '2345678901']], [{ notation: 'compact', compactDisplay: 'long' }, ['1000', '1234', '2000000']],
  [{ signDisplay: 'always' }, ['5', '0']], [{ signDisplay: 'exceptZero' }, ['5', '0', '-5']], [{ signDisplay: 'never' }, ['-5']],
  [{ style: 'unit', unit: 'kilometer' }, ['5', '1']], [{ style: 'unit', unit: 'megabyte', unitDisplay: 'long' }, ['1', '16.5']], [{ style: 'unit', unit: 'celsius' }, ['-3']],
];
const numbers = [];
for (const locale of LOCALES) for (const [options, values] of NUMBERS) for (const value of values) {
  const format = new Intl.NumberFormat(locale, options);
  const row = [locale, options, value, format.format(Number(value))];
  numbers.push(value === values[0] ? [...row, format.formatToParts(Number(value)).map(({ type, value }) => [type, value])] : row);
}
numbers.push(['en-US', {}, '123456789012345678901234567890', new Intl.NumberFormat('en-US').format(123456789012345678901234567890n)]);
write('numbers.json', numbers);

// -- Order: [locale, options, sorted] --------------------------------------------

const WORDS = ['zebra', 'Apple', 'apple', 'äpfel', 'Äpfel', 'apfel', 'Zoo', 'zoo', 'éclair', 'eclair', 'naïve', 'naive', 'ñandú', 'nz', 'na', 'straße', 'strasse', 'Strand', 'øre', 'ore', 'æon', 'aeon', 'item 10', 'item 2', 'item-1', 'item_1', 'a b', 'ab', 'a-b', '10', '9', '2', '', ' ', 'résumé', 'resume', 'Résumé', '#tag', '@at', '(x)', 'über', 'uber', 'ubez', 'coop', 'co-op', 'CO-OP'];
const order = [];
for (const [locale, options] of [['en-US', {}], ['de-DE', {}], ['es-ES', {}], ['en-US', { numeric: true }], ['en-US', { sensitivity: 'base' }], ['en-US', { sensitivity: 'accent' }], ['en-US', { caseFirst: 'upper' }]]) {
  order.push([locale, options, WORDS, [...WORDS].sort(new Intl.Collator(locale, options).compare)]);
}
write('order.json', order);
