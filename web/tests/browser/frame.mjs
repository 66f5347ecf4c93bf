// What the page does when the stream or another person gets in its way, and with more than a real server has in a
// test. What a real server does on demand is in the other files.
import assert from 'node:assert/strict';
import { Fake, question } from '../fake.mjs';
import { clean, look, matrix, settle, visitAll } from '../look.mjs';
import { poisoned, QUESTIONS, ROUTES, SAMPLE } from '../sample.mjs';
import { by, open, until, visit } from '../world.mjs';

async function withFake(browser, run, options = {}) {
  const fake = await Fake.start();
  try {
    const page = await open(browser, fake, { signIn: false, ...options });
    await page.locator('[data-test=connection].live').waitFor();
    await run({ fake, page });
    assert.deepEqual(page.problems, []);
    await page.context().close();
  } finally {
    fake.end();
  }
}

const ready = (page) => by(page, 'decide').and(page.locator('[data-inert=false]')).waitFor();

const BAIT = '"><img src=x onerror=alert(1)><script>alert(2)</script>\'`${alert(3)}</textarea></pre>javascript:alert(4)\u202e';

export const tests = {
  async 'after a missing event everything is asked again'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      await visit(page, '/inbox');
      await by(page, 'question').first().waitFor();
      fake.questions.push(question('c3', { tool: 'lost' }));
      fake.emit('tools', {}, 3);
      await page.locator('[data-test=question][data-tool=lost]').waitFor();
    });
  },

  async 'a stream that breaks is taken up again, and what happened meanwhile is there'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      await visit(page, '/inbox/a1');
      await ready(page);
      fake.isDown = true;
      fake.breakStreams();
      await page.locator('[data-test=connection].connecting').waitFor();
      assert.equal(await by(page, 'approve').isEnabled(), false);
      await by(page, 'cannot').waitFor();
      await by(page, 'outage').waitFor();
      const wrongs = [];
      await look(page, 'state-offline-light-1280', wrongs);
      assert.deepEqual(wrongs, []);
      fake.questions.push(question('d4', { tool: 'meanwhile' }));
      fake.seq += 1;
      fake.isDown = false;
      await page.locator('[data-test=connection].live').waitFor();
      await page.locator('[data-test=question][data-tool=meanwhile]').waitFor();
      await ready(page);
      assert.equal(await by(page, 'approve').isEnabled(), true);
    });
  },

  async 'the buttons rest for a moment after anything changed'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      fake.questions = [question('a1', { inertMs: 60_000 })];
      await visit(page, '/inbox/a1');
      await by(page, 'decide').waitFor();
      assert.equal(await by(page, 'approve').isEnabled(), false);
      await page.keyboard.press('a');
      assert.equal(await by(page, 'confirm-approve').count(), 0, 'keys rest as well');
      // The control: with no rest the same question can be answered.
      fake.questions = [question('a1', { inertMs: 0, revision: 'second' })];
      fake.emit('inbox', { id: 'a1', state: 'pending', waiting: 1 });
      await ready(page);
      await by(page, 'approve').click();
      await by(page, 'confirm-approve').waitFor();
      // It changes under the finger: the step to confirm is gone.
      fake.questions = [question('a1', { inertMs: 0, revision: 'third', argumentsText: '{}' })];
      fake.emit('inbox', { id: 'a1', state: 'pending', waiting: 1 });
      await by(page, 'confirm-approve').waitFor({ state: 'detached' });
      assert.deepEqual(fake.sent, []);
    });
  },

  async 'an answer that came too late says who answered'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      await visit(page, '/inbox/a1');
      await ready(page);
      await by(page, 'approve').click();
      // Answered elsewhere, and the event about it is lost.
      fake.streams.clear();
      fake.settle('a1', 'declined', 'ada');
      await by(page, 'confirm-approve').click();
      await by(page, 'settled').waitFor();
      assert.match(await by(page, 'settled').innerText(), /Denied by ada/);
      assert.equal(fake.questions[0].state, 'declined');
    });
  },

  async 'the list does not offer what one answered, before any event about it'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      fake.questions.push(question('b2', { askedAtMs: Date.now() + 1 }));
      await visit(page, '/inbox/a1');
      await ready(page);
      fake.streams.clear();
      await by(page, 'deny').click();
      await by(page, 'confirm-deny').click();
      await by(page, 'settled').waitFor();
      await page.waitForFunction(() => document.querySelectorAll('[data-test=question][data-state=pending]').length === 1);
      assert.match(await page.locator('[data-test=question][data-state=pending]').getAttribute('href'), /b2/);
      assert.equal(await page.locator('[data-test=question][data-state=declined]').count(), 1);
    });
  },

  async 'two tabs share one stream, and one takes over from the other'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      const second = await page.context().newPage();
      await second.goto(`${fake.studio}/#/inbox`);
      await second.locator('[data-test=connection].live').waitFor();
      assert.equal(fake.streams.size, 1);
      fake.questions.push(question('e5', { tool: 'shared' }));
      fake.emit('inbox', { id: 'e5', state: 'pending', waiting: 2 });
      await second.locator('[data-test=question][data-tool=shared]').waitFor();
      await page.goto('about:blank');
      await second.locator('[data-test=connection].live').waitFor();
      fake.questions.push(question('f6', { tool: 'inherited' }));
      await until(() => fake.streams.size === 1);
      fake.emit('inbox', { id: 'f6', state: 'pending', waiting: 3 });
      await second.locator('[data-test=question][data-tool=inherited]').waitFor();
    });
  },

  async 'a thousand questions are shown and walked with keys'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      fake.questions = Array.from({ length: 1000 }, (_, index) => question(`q${index}`, { tool: `tool${index}`, askedAtMs: 1_000_000 + index }));
      await visit(page, '/inbox');
      await page.locator('li[aria-posinset="1"][aria-setsize="1000"]').waitFor();
      assert.ok((await by(page, 'question').count()) < 80, 'only what is near the screen is in the page');
      for (let step = 0; step < 5; step++) await page.keyboard.press('j');
      await page.waitForFunction(() => location.hash === '#/inbox/q4');
      // The focus stays where it is while the list is scrolled to its end, and keys go on from there.
      await page.evaluate(() => document.querySelector('[data-key=q4] a').focus());
      await page.evaluate(() => document.querySelector('.list').scrollTo(0, 1e9));
      await page.locator('[data-key=q990]').waitFor();
      assert.equal(await page.evaluate(() => document.activeElement.closest('li').dataset.key), 'q4');
      await page.keyboard.press('j');
      await page.waitForFunction(() => location.hash === '#/inbox/q5');
      await page.keyboard.press('End');
      await page.waitForFunction(() => location.hash === '#/inbox/q999');
      assert.equal(await page.evaluate(() => document.activeElement.closest('li').getAttribute('aria-posinset')), '1000');
      await page.keyboard.press('Home');
      await page.waitForFunction(() => location.hash === '#/inbox/q0');
      assert.equal(await page.locator('[data-key=q300]').count(), 0);
    });
  },

  async 'one more question among a thousand changes one row and asks for no list'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      fake.questions = Array.from({ length: 1000 }, (_, index) => question(`q${index}`, { tool: `tool${index}`, askedAtMs: 1_000_000 + index }));
      await visit(page, '/inbox');
      await page.locator('li[aria-setsize="1000"]').first().waitFor();
      const lists = () => fake.asked.filter((name) => name === 'GET /inbox').length;
      const before = lists();
      await page.evaluate(() => {
        window.changed = [];
        const note = (records) => window.changed.push(...records.filter((record) => record.type === 'childList').flatMap((record) => [...record.addedNodes, ...record.removedNodes]).map((node) => node.dataset?.key ?? node.nodeName));
        new MutationObserver(note).observe(document.querySelector('.rows'), { childList: true, subtree: true });
      });
      fake.questions.push(question('new', { tool: 'another', askedAtMs: 2_000_000 }));
      fake.emit('inbox', { id: 'new', state: 'pending', waiting: 1001 });
      await page.locator('li[aria-setsize="1001"]').first().waitFor();
      await page.locator('[data-key=new]').waitFor({ state: 'attached' });
      // The last row is always there, so the one that was last goes and the new one comes. No other row is made again.
      assert.deepEqual((await page.evaluate(() => window.changed)).sort(), ['new', 'q999']);
      fake.settle('q0', 'declined', 'ada');
      await page.locator('[data-test=question][data-state=declined]').waitFor();
      assert.match(await by(page, 'waiting').innerText(), /^1000 /);
      assert.equal(lists(), before);
    });
  },

  async 'a storm of events neither starves the page nor floods the server'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      await visit(page, '/inbox');
      await by(page, 'question').first().waitFor();
      const before = fake.asked.length;
      fake.questions.push(question('g7', { tool: 'stormy' }));
      const storm = setInterval(() => fake.emit('inbox', { id: 'g7', state: 'pending', waiting: 2 }), 5);
      try {
        // It comes while the storm goes on, not after it.
        await page.locator('[data-test=question][data-tool=stormy]').waitFor();
        const enough = fake.seq + 200;
        await until(() => fake.seq >= enough);
      } finally {
        clearInterval(storm);
      }
      assert.ok(fake.asked.length - before < 120, `${fake.asked.length - before} requests`);
    });
  },

  async 'text of others is text in every field of every answer'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      fake.routes = Object.fromEntries(Object.entries(SAMPLE).map(([name, value]) => [name, poisoned(value, BAIT)]));
      fake.routes['GET /inbox'] = () => ({ items: fake.questions, waiting: 1, next: null });
      fake.questions = QUESTIONS.map((item) => ({ ...poisoned(item, BAIT), scopes: item.scopes }));
      fake.emit('reset');
      await page.getByText('onerror=alert(1)').first().waitFor();
      let seen = '';
      for (const [name, address] of Object.entries(ROUTES)) {
        await visit(page, address);
        await settle(page);
        // The control: it is there, as text.
        await page.waitForFunction(() => document.querySelector('main').innerText.includes('onerror=alert(1)'));
        await clean(page);
        const text = await page.locator('main').innerText();
        assert.ok(!text.includes('\u202e'), `${name}: an override that is not shown`);
        seen += text;
      }
      assert.ok(seen.includes('\\u{202e}'));
      await visit(page, '/inspector/getForecast');
      await by(page, 'run').click();
      await by(page, 'call-result').waitFor();
      await clean(page);
    });
  },

  async 'ten thousand rows and five megabytes stay usable'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      const row = (index) => ({ ...SAMPLE['GET /audit'].items[0], id: `row-${index}`, tool: `tool${index}` });
      const big = 'y'.repeat(5_000_000);
      fake.routes = { ...SAMPLE, 'GET /audit': { items: Array.from({ length: 10_000 }, (_, index) => row(index)), next: null, filter: {}, empty: null }, 'POST /inspector/call': { ...SAMPLE['POST /inspector/call'], resultText: big, content: [{ type: 'text', text: big }] } };
      await visit(page, '/audit');
      await page.locator('li[aria-setsize="10000"]').first().waitFor();
      assert.ok((await by(page, 'entry').count()) < 80);
      await page.evaluate(() => document.querySelector('.list').scrollTo(0, 1e9));
      await page.locator('[data-key=row-9990]').waitFor();
      // What is read does not move away when a row comes on top.
      const top = () => page.evaluate(() => document.querySelector('[data-key=row-9990]').getBoundingClientRect().top);
      const before = await top();
      fake.emit('audit', { item: row(10_000) });
      await page.locator('li[aria-setsize="10001"]').first().waitFor();
      assert.equal(Math.round(await top()), Math.round(before));
      await page.evaluate(() => document.querySelector('.list').scrollTo(0, 0));
      await by(page, 'entry').filter({ hasText: 'tool10000' }).waitFor();
      await visit(page, '/inspector/getForecast');
      await by(page, 'run').click();
      await by(page, 'call-result').waitFor();
      await page.getByRole('tab', { name: 'JSON', exact: true }).click();
      await page.locator('.editor[data-ready=true]').waitFor();
    });
  },

  ...matrix('every page', async (browser, scheme, width) => {
    const fake = await Fake.start();
    try {
      fake.routes = { ...SAMPLE, 'GET /inbox': () => ({ items: fake.questions, waiting: 1, next: null }) };
      fake.questions = QUESTIONS;
      await visitAll(browser, fake, ROUTES, { scheme, width, tag: 'sample-', signIn: false });
    } finally {
      fake.end();
    }
  }),
};
