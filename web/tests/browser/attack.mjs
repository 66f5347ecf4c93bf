// What others write reaches the page through every field they can fill. None of it may become markup, run, or
// hide; and the page cannot be framed or driven from elsewhere.
import assert from 'node:assert/strict';
import http from 'node:http';
import { clean } from '../look.mjs';
import { by, open, visit, World } from '../world.mjs';

const BAIT = '"><img src=x onerror=alert(1)><script>alert(2)</script>\'`${alert(3)}</textarea></pre>{{alert(4)}}javascript:alert(5)';

/** A tool whose every field is hostile. */
const HOSTILE = {
  name: 'hostile',
  description: `Hurts. ${BAIT} Returns {out}.`,
  category: BAIT,
  tags: [BAIT],
  params: [{ name: 'what', description: BAIT, required: true, type: 'STRING', testValue: BAIT }],
  code: 'console.log(what); console.error(what); if (what.includes("fail")) throw new Error(what); return { out: what, [what]: what };',
  codeType: 'Javascript',
  humanInTheLoop: { mode: 'DISABLED', promptTemplate: `${BAIT} {args}` },
};

export const tests = {
  async 'text of others is text, on every page that shows it'(browser) {
    const world = await World.start({ files: { 'tools/hostile.json': JSON.stringify(HOSTILE) }, settings: '[exposure]\npreset = "everything"\n[approvals]\nwait_seconds = 40\n' });
    try {
      try {
        world.run('test', 'hostile');
        world.run('publish', 'hostile');
      } catch {
        // What cannot be published is still listed and edited.
      }
      const client = await world.client('agent');
      await client.callTool({ name: 'hostile', arguments: { what: BAIT } }).catch(() => {});
      await client.callTool({ name: 'hostile', arguments: { what: `fail ${BAIT}` } }).catch(() => {});
      await client.callTool({ name: BAIT.slice(0, 60), arguments: { [BAIT]: BAIT } }).catch(() => {});
      const waits = client.callTool({ name: 'writeTextFile', arguments: { path: BAIT, text: BAIT } }, undefined, { timeout: 60_000 }).catch(() => {});
      const page = await open(browser, world);
      await visit(page, '/inbox');
      await by(page, 'question').first().click();
      await by(page, 'question-view').waitFor();
      assert.ok((await by(page, 'arguments').innerText()).includes('<img src=x onerror=alert(1)>'), 'the control: it is there, as text');
      await clean(page);
      await by(page, 'deny').click();
      await by(page, 'deny-note').fill(BAIT);
      await by(page, 'confirm-deny').click();
      await by(page, 'settled').waitFor();
      await clean(page);
      await waits;
      for (const address of ['/home', '/tools', '/tools/hostile', '/tools/hostile/edit', '/tools/hostile/edit?view=document', '/tools/hostile/publish', '/audit', '/audit?kind=all', '/numbers', '/callers', '/inspector/hostile', `/audit?tool=${encodeURIComponent(BAIT)}`, `/tools?search=${encodeURIComponent(BAIT)}`, `/${encodeURIComponent(BAIT)}`]) {
        await visit(page, address);
        await page.locator('main').waitFor();
        await page.waitForFunction(() => !document.querySelector('[role=status].state'));
        await clean(page);
      }
      await visit(page, '/inspector/hostile');
      await page.locator('[data-field=what] input, [data-field=what] textarea').fill(BAIT);
      await by(page, 'run').click();
      await by(page, 'call-result').waitFor();
      await clean(page);
      await visit(page, '/audit');
      for (const row of await by(page, 'entry').all()) {
        await row.click();
        await by(page, 'entry-view').waitFor();
        await clean(page);
      }
      assert.deepEqual(page.problems, []);
    } finally {
      await world.end();
    }
  },

  async 'the page is in no frame of another, and its sources are its own'(browser) {
    const world = await World.start();
    const other = http.createServer((_, response) => response.setHeader('content-type', 'text/html').end(`<iframe src="${world.studio}/"></iframe>`)).listen(0, '127.0.0.1');
    try {
      await new Promise((resolve) => other.once('listening', resolve));
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`http://127.0.0.1:${other.address().port}/`);
      await page.waitForFunction(() => document.querySelector('iframe'));
      const inner = page.frames().find((frame) => frame !== page.mainFrame());
      assert.equal(await inner.locator('[data-test=sign-in]').count(), 0);
      await context.close();
      const own = await open(browser, world);
      // The control: what the policy forbids is refused by this browser.
      const tried = await own.evaluate(() => {
        const seen = [];
        document.addEventListener('securitypolicyviolation', (event) => seen.push(event.effectiveDirective));
        try {
          document.body.innerHTML = '<b>x</b>';
        } catch (error) {
          seen.push(error.name);
        }
        const script = document.createElement('script');
        try {
          script.text = '1';
        } catch (error) {
          seen.push(error.name);
        }
        return seen;
      });
      assert.deepEqual(tried.filter((name) => name === 'TypeError').length, 2, String(tried));
      await own.context().close();
    } finally {
      other.close();
      await world.end();
    }
  },

  async 'nothing that opens the door is in storage, in the address or in the page'(browser) {
    const world = await World.start();
    try {
      const code = world.code;
      const page = await open(browser, world);
      const facts = await page.evaluate(async () => {
        const session = await (await fetch('/api/v1/session')).json();
        return { csrf: session.csrf, storage: JSON.stringify([localStorage, sessionStorage]), cookie: document.cookie, address: location.href, page: document.documentElement.outerHTML };
      });
      for (const place of [facts.storage, facts.cookie, facts.address, facts.page]) {
        assert.ok(!place.includes(facts.csrf));
        assert.ok(!place.includes(code));
      }
      assert.equal(facts.cookie, '');
      // A code is good once.
      const second = await open(browser, world, { signIn: false });
      await by(second, 'code').fill(code);
      await by(second, 'enter').click();
      await by(second, 'failed').waitFor();
      await second.context().close();
      await by(page, 'who').click();
      await by(page, 'sign-out').click();
      await by(page, 'sign-in').waitFor();
      assert.equal(await page.evaluate(async () => (await fetch('/api/v1/tools')).status), 401);
    } finally {
      await world.end();
    }
  },
};
