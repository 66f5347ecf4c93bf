// What the page does when the stream, the session or another person gets in its way.
import assert from 'node:assert/strict';
import { Fake, question, risk } from '../fake.mjs';
import { clean, look, matrix, settle, visitAll } from '../look.mjs';
import { poisoned, QUESTIONS, ROUTES, SAMPLE } from '../sample.mjs';
import { by, open, visit } from '../world.mjs';

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
  async 'a question appears at once, in the list, the count and the title'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      await visit(page, '/inbox');
      await by(page, 'question').first().waitFor();
      fake.questions.push(question('b2', { tool: 'deleteFile', risk: risk('L5', 'destructive') }));
      fake.emit('inbox', { id: 'b2', state: 'pending', waiting: 2 });
      await page.locator('[data-test=question][data-tool=deleteFile]').waitFor();
      await page.waitForFunction(() => document.title.startsWith('(2)'));
      assert.match(await by(page, 'count-inbox').innerText(), /^2/);
      assert.equal(await page.evaluate(() => document.querySelector('link[rel=icon]').getAttribute('href')), '/favicon-waiting.svg');
    });
  },

  async 'every change carries JSON and the header of the session'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      await visit(page, '/inbox/a1');
      await ready(page);
      await by(page, 'approve').click();
      await by(page, 'confirm-approve').click();
      await by(page, 'settled').waitFor();
      assert.deepEqual(fake.sent, [{ name: '/inbox/a1/answer', body: { revision: 'first-a1', answer: 'approve', scope: 'once' }, csrf: 'of-this-session', type: 'application/json' }]);
    });
  },

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

  async 'a stale question says why'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      fake.questions = [question('a1', { stale: true, staleWhy: 'the tool changed since', canAnswer: false, cannotWhy: 'it is stale' })];
      await visit(page, '/inbox/a1');
      await by(page, 'stale').waitFor();
      assert.match(await by(page, 'stale').innerText(), /the tool changed since/);
      assert.equal(await by(page, 'approve').isEnabled(), false);
    });
  },

  async 'the end of a session leaves the page as it is, and signing in goes on'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      await visit(page, '/inbox/a1');
      await ready(page);
      await by(page, 'deny').click();
      await by(page, 'deny-note').fill('a long reason, half');
      fake.isIn = false;
      fake.emit('session', { ended: true });
      await by(page, 'sign-in').waitFor();
      assert.match(await by(page, 'sign-in').innerText(), /What you typed is still here/);
      const wrongs = [];
      await look(page, 'state-expired-light-1280', wrongs);
      assert.deepEqual(wrongs, []);
      await by(page, 'code').fill('K7Q2M-9XWRD');
      await by(page, 'enter').click();
      await by(page, 'sign-in').waitFor({ state: 'detached' });
      assert.equal(await by(page, 'deny-note').inputValue(), 'a long reason, half');
      await page.locator('[data-test=connection].live').waitFor();
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
      const deadline = Date.now() + 10_000;
      while (fake.streams.size !== 1 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
      fake.emit('inbox', { id: 'f6', state: 'pending', waiting: 3 });
      await second.locator('[data-test=question][data-tool=inherited]').waitFor();
    });
  },

  async 'a thousand questions are shown and walked with keys'(browser) {
    await withFake(browser, async ({ fake, page }) => {
      fake.questions = Array.from({ length: 1000 }, (_, index) => question(`q${index}`, { tool: `tool${index}` }));
      await visit(page, '/inbox');
      await by(page, 'question').nth(999).waitFor({ state: 'attached' });
      for (let step = 0; step < 5; step++) await page.keyboard.press('j');
      await page.waitForFunction(() => location.hash === '#/inbox/q4');
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
        await page.locator('[data-test=question][data-tool=stormy]').waitFor({ timeout: 5000 });
        const enough = fake.seq + 200;
        while (fake.seq < enough) await new Promise((resolve) => setTimeout(resolve, 10));
      } finally {
        clearInterval(storm);
      }
      assert.ok(fake.asked.length - before < 120, `${fake.asked.length - before} requests`);
    });
  },

  async 'the back button goes where one came from'(browser) {
    await withFake(browser, async ({ page }) => {
      for (const address of ['/inbox', '/inbox/a1', '/tools', '/audit?tool=x']) await visit(page, address);
      await page.goBack();
      await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor();
      await page.goBack();
      await by(page, 'question-view').waitFor();
      await page.goBack();
      await by(page, 'question-view').waitFor({ state: 'detached' });
    });
  },

  async 'at 360 px a question can be read and answered'(browser) {
    await withFake(
      browser,
      async ({ page }) => {
        await visit(page, '/inbox');
        await by(page, 'question').first().click();
        await ready(page);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
        await by(page, 'deny').click();
        await by(page, 'confirm-deny').click();
        await by(page, 'settled').waitFor();
      },
      { width: 360 },
    );
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
      await by(page, 'entry').nth(9_999).waitFor({ state: 'attached' });
      await page.evaluate(() => document.querySelector('.list').scrollTo(0, 1e9));
      fake.emit('audit', { item: row(10_000) });
      await by(page, 'entry').filter({ hasText: 'tool10000' }).waitFor({ state: 'attached' });
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
