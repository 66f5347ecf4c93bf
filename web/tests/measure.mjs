// What the Studio promises about speed, measured against a real server. Run by hand, never by CI:
//
//   cargo build --profile serve && cd web && RINGFENCE=../target/serve/ringfence node tests/measure.mjs [ROWS]
//
// ROWS is how many calls the audit holds before it is measured: 100000 unless it is said. Prints a table in Markdown for
// docs/measurements.
import os from 'node:os';
import { launch } from './chromium.mjs';
import { by, open, visit, World } from './world.mjs';

const ROWS = Number(process.argv[2] ?? 100_000);
const rows = [];
const sorted = (values) => [...values].sort((one, two) => one - two);
const quantile = (values, part) => sorted(values)[Math.min(values.length - 1, Math.floor(values.length * part))];
const ms = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function add(what, values, promise) {
  rows.push([what, values.length, ms(quantile(values, 0.5)), ms(quantile(values, 0.95)), ms(Math.max(...values)), promise]);
  console.error(`${what}: median ${ms(quantile(values, 0.5))} ms`);
}

/** Time of each frame while a list is scrolled from end to end. */
async function frames(page, selector, seconds = 3) {
  return page.evaluate(
    async ([which, length]) => {
      const box = document.querySelector(which);
      const times = [];
      const begin = performance.now();
      let last = begin;
      while (performance.now() - begin < length * 1000) {
        await new Promise((done) => requestAnimationFrame(done));
        const at = performance.now();
        times.push(at - last);
        last = at;
        box.scrollTop += 400;
        if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) box.scrollTop = 0;
      }
      return times.slice(1);
    },
    [selector, seconds],
  );
}

/** When a row that holds this text came into the page. */
function arrival(page, text) {
  return page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const look = () => document.querySelector('.list-body')?.textContent.includes(wanted) && (watcher.disconnect(), resolve(Date.now()));
        const watcher = new MutationObserver(look);
        watcher.observe(document.body, { childList: true, subtree: true, characterData: true });
        look();
      }),
    text,
  );
}

async function paint(browser, world) {
  const page = await open(browser, world);
  const first = [];
  const ready = [];
  for (let turn = 0; turn < 15; turn++) {
    await page.reload();
    await page.locator('[data-test=connection].live').waitFor();
    ready.push(await page.evaluate(() => performance.now()));
    // The browser may tell of its first paint later than the page has news.
    first.push(
      await page.evaluate(
        () =>
          new Promise((resolve) => {
            const told = (entries) => entries.filter((entry) => entry.name === 'first-contentful-paint').forEach((entry) => resolve(entry.startTime));
            new PerformanceObserver((list) => told(list.getEntries())).observe({ type: 'paint', buffered: true });
          }),
      ),
    );
  }
  add('first paint of the page, signed in', first, '300');
  add('the same until it follows events', ready, '');
  await page.context().close();
}

async function live(browser, world, client) {
  const page = await open(browser, world);
  await visit(page, '/audit');
  await by(page, 'entry').first().waitFor();
  const seen = [];
  for (let turn = 0; turn < 20; turn++) {
    const name = `noSuchTool${turn}x`;
    const came = arrival(page, name);
    await client.callTool({ name, arguments: {} }).catch(() => {});
    const ended = Date.now();
    seen.push(Math.max(0, (await came) - ended));
  }
  add('an ended call until it is on the audit page', seen, '200');
  await page.context().close();
}

/** A thousand questions of real clients that wait, sixty of each. */
async function questions(browser) {
  const settings = '[exposure]\npreset = "everything"\n\n[approvals]\nwait_seconds = 600\n\n[serve]\nconnections_max = 4096\ncalls_per_minute = 1000000\ncalls_per_caller_max = 64\n';
  const world = await World.start({ settings });
  try {
    const ask = (client, text) => client.callTool({ name: 'writeTextFile', arguments: { path: 'a.txt', text } }, undefined, { timeout: 600_000 }).catch(() => {});
    const clients = [];
    for (let at = 0; at < 17; at++) clients.push(await world.client(`agent${at}`));
    for (let at = 0; at < 1000; at++) void ask(clients[at % 17], `text ${at}`);
    const page = await open(browser, world);
    await visit(page, '/inbox');
    await page.waitForFunction(() => /^1000 /.test(document.querySelector('[data-test=waiting]')?.textContent ?? ''), undefined, { timeout: 120_000 });
    const shown = [];
    for (let turn = 0; turn < 7; turn++) {
      await visit(page, '/home');
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
      shown.push(
        await page.evaluate(async () => {
          const begin = performance.now();
          location.hash = '#/inbox';
          while (!document.querySelector('li[aria-setsize="1000"]')) await new Promise((done) => requestAnimationFrame(done));
          return performance.now() - begin;
        }),
      );
    }
    add('1,000 open questions until they are shown', shown, '');
    add('a frame while they are scrolled', await frames(page, '.list'), '17');
    const updates = [];
    for (let turn = 0; turn < 10; turn++) {
      const came = page.evaluate((wanted) => new Promise((resolve) => {
        const look = () => document.querySelector('[data-test=waiting]')?.textContent.startsWith(`${wanted} `) && (watcher.disconnect(), resolve(Date.now()));
        const watcher = new MutationObserver(look);
        watcher.observe(document.body, { childList: true, subtree: true, characterData: true });
        look();
      }), 1001 + turn);
      const sent = Date.now();
      void ask(clients[turn], `one more ${turn}`);
      updates.push((await came) - sent);
    }
    add('one more question until it is among them, from the client\'s call on', updates, '200');
    await page.context().close();
  } finally {
    await world.end();
  }
}

/** Calls of real clients, eight at a time. A client keeps something for each call it made, so each makes a thousand. */
async function fill(world, wanted) {
  let left = wanted;
  let clients = 0;
  const work = async () => {
    while (left > 0) {
      const client = await world.client(`filler${clients++}`);
      for (let turn = 0; turn < 1000 && left-- > 0; turn++) await client.callTool({ name: 'countWords', arguments: { text: 'one two' } }).catch(() => {});
      await client.close();
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
}

async function log(browser, world) {
  const page = await open(browser, world);
  const at = (address, of) =>
    page.evaluate(
      async ([to, selector]) => {
        const begin = performance.now();
        location.hash = to;
        while (!document.querySelector(selector)) await new Promise((done) => requestAnimationFrame(done));
        return performance.now() - begin;
      },
      [address, of],
    );
  const first = [];
  const filtered = [];
  for (let turn = 0; turn < 7; turn++) {
    await visit(page, '/home');
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
    first.push(await at('#/audit', '[data-test=entry]'));
    await visit(page, '/home');
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
    filtered.push(await at('#/audit?status=refused', '[data-status=refused]'));
  }
  add('the audit page until its rows are shown', first, '');
  add('the same, filtered to refusals', filtered, '');
  await visit(page, '/audit');
  await by(page, 'entry').first().waitFor();
  // To the end of the log, as fast as its pages come.
  const rows = () => page.evaluate(() => Math.max(0, ...[...document.querySelectorAll('.rows > li')].map((row) => Number(row.getAttribute('aria-posinset')))));
  const older = [];
  let before = await rows();
  while (await by(page, 'more').count()) {
    const begin = Date.now();
    await page.evaluate(() => document.querySelector('.list').scrollTo(0, 1e9));
    await page.waitForFunction((count) => [...document.querySelectorAll('.rows > li')].some((row) => Number(row.getAttribute('aria-posinset')) > count) || !document.querySelector('[data-test=more]') || document.querySelector('[data-test=failed]'), before);
    if (await by(page, 'failed').count()) throw new Error(await by(page, 'failed').first().innerText());
    older.push(Date.now() - begin);
    before = await rows();
  }
  add('500 older rows, by scrolling', older, '');
  add(`a frame while ${before.toLocaleString('en')} rows are scrolled`, await frames(page, '.list', 5), '17');
  await page.context().close();
}

const browser = await launch();
const world = await World.start({ settings: '[exposure]\npreset = "everything"\n\n[serve]\ncalls_per_minute = 1000000\ncalls_per_caller_max = 64\n' });
try {
  const client = await world.client('agent');
  await client.callTool({ name: 'noSuchTool', arguments: {} }).catch(() => {});
  await paint(browser, world);
  await live(browser, world, client);
  await questions(browser);
  console.error(`making ${ROWS} calls`);
  await fill(world, ROWS);
  await log(browser, world);
  await live(browser, world, client);
} finally {
  await world.end();
  await browser.close();
}
console.log(`${os.cpus().length} cores, ${ROWS.toLocaleString('en')} calls in the audit, ${new Date().toISOString().slice(0, 10)}\n`);
console.log('| What | Times | Median, ms | 95 %, ms | Longest, ms | Promise, ms |\n| --- | --- | --- | --- | --- | --- |');
for (const row of rows) console.log(`| ${row.join(' | ')} |`);
