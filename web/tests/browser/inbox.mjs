// A person answers calls of real clients.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { look } from '../look.mjs';
import { by, editor, enter, open, type, visit, World } from '../world.mjs';

const ASK = 'writeTextFile';

async function asked(browser, run, options = {}) {
  const world = await World.start();
  try {
    const client = await world.client('researcher');
    const page = await open(browser, world, options);
    await visit(page, '/inbox');
    await run({ world, client, page });
    assert.deepEqual(page.problems, []);
  } finally {
    await world.end();
  }
}

const ready = (page) => by(page, 'decide').and(page.locator('[data-inert=false]')).waitFor();

const call = (client, args) => client.callTool({ name: ASK, arguments: args }, undefined, { timeout: 60_000 });

export const tests = {
  async 'a call that a client waits for is approved and runs'(browser) {
    await asked(browser, async ({ world, client, page }) => {
      const result = call(client, { path: 'a.txt', text: 'hello' });
      await by(page, 'question').first().click();
      const view = by(page, 'question-view');
      await view.waitFor();
      assert.match(await view.innerText(), /researcher wants/);
      assert.match(await by(page, 'arguments').innerText(), /a\.txt/);
      assert.match(await by(page, 'touches').innerText(), /write files/);
      // Deny has the focus; approving takes two steps.
      await page.waitForFunction(() => document.activeElement?.getAttribute('data-test') === 'deny');
      await by(page, 'approve').click();
      await by(page, 'confirm-approve').click();
      const done = await result;
      assert.equal(done.isError ?? false, false, JSON.stringify(done));
      await by(page, 'settled').waitFor();
      assert.match(await by(page, 'settled').innerText(), /Approved.*by owner through studio/s);
      assert.equal(await by(page, 'question').count(), 1, 'the row stays');
      await by(page, 'settled').getByRole('link').click();
      await by(page, 'gates').waitFor();
      assert.match(await by(page, 'gates').innerText(), /approval/);
      assert.match(JSON.stringify(world.audit('--kind', 'notice')), /approval\.answered/);
    });
  },

  async 'a call is denied with a reason, by keys alone'(browser) {
    await asked(browser, async ({ client, page }) => {
      const result = call(client, { path: 'b.txt', text: 'hello' });
      await by(page, 'question').first().waitFor();
      await page.keyboard.press('j');
      await ready(page);
      await page.keyboard.press('d');
      await by(page, 'deny-note').waitFor();
      await page.keyboard.type('not today');
      await page.keyboard.press('Enter');
      const done = await result;
      assert.equal(done.isError, true);
      assert.match(JSON.stringify(done), /not today/);
      assert.match(await by(page, 'settled').innerText(), /Denied by owner/);
    });
  },

  async 'the arguments are changed before they are approved'(browser) {
    await asked(browser, async ({ client, page }) => {
      const result = call(client, { path: 'c.txt', text: 'secret plans' });
      await by(page, 'question').first().click();
      await by(page, 'change').click();
      await editor(page, 'change-editor').waitFor();
      await type(page, 'change-editor', JSON.stringify({ path: 'c.txt', text: 'harmless' }));
      await by(page, 'preview').waitFor();
      assert.match(await by(page, 'preview').innerText(), /harmless/);
      await by(page, 'confirm-change').click();
      const done = await result;
      assert.equal(done.isError ?? false, false, JSON.stringify(done));
      assert.match(JSON.stringify(done), /chang/i, 'the caller is told');
      await by(page, 'settled').waitFor();
    });
  },

  async 'a second browser answers first, and the first one says so'(browser) {
    await asked(browser, async ({ world, client, page }) => {
      const result = call(client, { path: 'd.txt', text: 'x' });
      await by(page, 'question').first().click();
      await ready(page);
      const other = await open(browser, world);
      await visit(other, '/inbox');
      await by(other, 'question').first().click();
      await by(other, 'deny').click();
      await by(other, 'confirm-deny').click();
      await result;
      await by(page, 'settled').waitFor();
      assert.match(await by(page, 'settled').innerText(), /Denied by owner/);
      assert.equal(await by(page, 'approve').count(), 0);
      await other.context().close();
    });
  },

  async 'nothing is cut off, and nothing is invisible'(browser) {
    await asked(browser, async ({ client, page }) => {
      const text = `start ${'x'.repeat(9000)} \u202eexe.txt the very end`;
      const result = call(client, { path: 'e.txt', text }).catch(() => {});
      await by(page, 'question').first().click();
      const shown = await by(page, 'arguments').innerText();
      assert.ok(shown.includes('the very end'), 'the end is shown');
      assert.ok(shown.includes('\\u{202e}'), 'the override is shown as its number');
      assert.ok(!shown.includes('\u202e'));
      assert.match(shown, /invisible character/);
      await by(page, 'deny').click();
      await by(page, 'confirm-deny').click();
      await result;
    });
  },

  async 'a page without a connection says so and cannot answer'(browser) {
    await asked(browser, async ({ world, client, page }) => {
      void call(client, { path: 'f.txt', text: 'x' });
      await by(page, 'question').first().click();
      await ready(page);
      assert.equal(await by(page, 'approve').isEnabled(), true);
      const address = new URL(world.url).host;
      await world.stop();
      await page.locator('[data-test=connection].connecting, [data-test=connection].offline').waitFor();
      assert.equal(await by(page, 'approve').isEnabled(), false);
      assert.equal(await by(page, 'deny').isEnabled(), false);
      await by(page, 'outage').waitFor();
      // It continues by itself when the server is back; sessions live in its memory, so it asks for a code.
      await world.serve(address);
      await page.locator('[data-test=connection].live, [data-test=sign-in]').first().waitFor();
    });
  },

  async 'a question appears at once, in the list, the count and the title'(browser) {
    await asked(browser, async ({ client, page }) => {
      await by(page, 'empty').waitFor();
      const first = call(client, { path: 'h.txt', text: 'x' });
      await by(page, 'question').first().waitFor();
      const second = call(client, { path: 'i.txt', text: 'x' });
      await page.waitForFunction(() => document.title.startsWith('(2)'));
      assert.match(await by(page, 'count-inbox').innerText(), /^2/);
      assert.match(await by(page, 'waiting').innerText(), /^2 /);
      assert.equal(await by(page, 'question').count(), 2);
      assert.equal(await page.evaluate(() => document.querySelector('link[rel=icon]').getAttribute('href')), '/favicon-waiting.svg');
      for (const path of ['h.txt', 'i.txt']) {
        await page.locator('[data-test=question][data-state=pending]').first().click();
        await by(page, 'arguments').getByText(path).waitFor();
        await by(page, 'deny').click();
        await by(page, 'confirm-deny').click();
        await by(page, 'settled').waitFor();
      }
      await Promise.all([first, second]);
      await page.waitForFunction(() => !document.title.startsWith('('));
    });
  },

  async 'every change carries JSON and the header of the session'(browser) {
    await asked(browser, async ({ client, page }) => {
      const sent = [];
      page.on('request', (request) => request.method() !== 'GET' && sent.push(request));
      const result = call(client, { path: 'j.txt', text: 'x' });
      await by(page, 'question').first().click();
      await ready(page);
      await by(page, 'approve').click();
      await by(page, 'confirm-approve').click();
      await by(page, 'settled').waitFor();
      await result;
      const csrf = await page.evaluate(async () => (await (await fetch('/api/v1/session')).json()).csrf);
      assert.equal(sent.length, 1);
      const headers = await sent[0].allHeaders();
      assert.equal(headers['x-ringfence-csrf'], csrf);
      assert.equal(headers['content-type'], 'application/json');
      const { revision, ...rest } = sent[0].postDataJSON();
      assert.ok(revision);
      assert.deepEqual(rest, { answer: 'approve', scope: 'once' });
    });
  },

  async 'a question that became stale says why and takes no yes'(browser) {
    await asked(browser, async ({ world, client, page }) => {
      const result = call(client, { path: 'k.txt', text: 'x' });
      await by(page, 'question').first().click();
      await ready(page);
      assert.equal(await by(page, 'approve').isEnabled(), true);
      fs.appendFileSync(path.join(world.home, 'ringfence.toml'), '\n[[rule]]\nid = "no-writing"\neffect = "deny"\ntools = ["writeTextFile"]\nreason = "frozen"\n');
      await by(page, 'stale').waitFor();
      assert.match(await by(page, 'stale').innerText(), /frozen|no-writing/);
      assert.equal(await by(page, 'approve').isEnabled(), false);
      await client.close();
      await result.catch(() => {});
    });
  },

  async 'the end of a session leaves the page as it is, and signing in goes on'(browser) {
    await asked(browser, async ({ world, client, page }) => {
      const result = call(client, { path: 'l.txt', text: 'x' });
      await by(page, 'question').first().click();
      await ready(page);
      await by(page, 'deny').click();
      await by(page, 'deny-note').fill('a long reason, half');
      const other = await open(browser, world);
      await by(other, 'who').click();
      await by(other, 'sign-out-all').click();
      await by(page, 'sign-in').waitFor();
      assert.match(await by(page, 'sign-in').innerText(), /What you typed is still here/);
      const wrongs = [];
      await look(page, 'state-expired-light-1280', wrongs);
      assert.deepEqual(wrongs, []);
      await enter(page, world);
      await by(page, 'sign-in').waitFor({ state: 'detached' });
      assert.equal(await by(page, 'deny-note').inputValue(), 'a long reason, half');
      await by(page, 'confirm-deny').click();
      assert.match(JSON.stringify(await result), /a long reason, half/);
      await other.context().close();
    });
  },

  async 'the back button goes where one came from'(browser) {
    await asked(browser, async ({ client, page }) => {
      void call(client, { path: 'm.txt', text: 'x' });
      await by(page, 'question').first().click();
      await by(page, 'question-view').waitFor();
      for (const address of ['/tools', '/audit?tool=x']) await visit(page, address);
      await page.goBack();
      await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor();
      await page.goBack();
      await by(page, 'question-view').waitFor();
      await page.goBack();
      await by(page, 'question-view').waitFor({ state: 'detached' });
    });
  },

  async 'at 360 px a question can be read and answered'(browser) {
    await asked(
      browser,
      async ({ client, page }) => {
        const result = call(client, { path: `${'long-'.repeat(20)}.txt`, text: 'x'.repeat(400) });
        await by(page, 'question').first().click();
        await ready(page);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
        await by(page, 'deny').click();
        await by(page, 'confirm-deny').click();
        await by(page, 'settled').waitFor();
        await result;
      },
      { width: 360 },
    );
  },

  async 'a question waits for a call inside a script'(browser) {
    await asked(browser, async ({ world, client, page }) => {
      const script = `const words = await callTool('countWords', { text: 'a b' });\n// then it writes <b>bold</b>\nreturn await callTool('${ASK}', { path: 'g.txt', text: 'from a script' });`;
      const result = client.callTool({ name: 'codecall_execute', arguments: { script } }, undefined, { timeout: 60_000 }).catch((error) => error);
      await by(page, 'question').first().click();
      assert.match(await by(page, 'question-view').innerText(), /codecall|script/);
      // The script whole, with the line that waits, here and at a terminal.
      assert.match(await by(page, 'script').innerText(), /line 3 of a script of 3 lines waits/);
      assert.equal(await page.locator('.script-line').count(), 3);
      assert.match(await page.locator('.script-line.waits').innerText(), /writeTextFile/);
      assert.match(await page.locator('.script-line').nth(1).innerText(), /<b>bold<.b>/);
      const [{ id }] = JSON.parse(world.run('approvals', 'list', '--json'));
      const shown = world.run('approvals', 'show', id);
      assert.match(shown, /line 3 of a script of 3 lines waits/);
      assert.match(shown, /> +3 +return await callTool\('writeTextFile'/);
      assert.deepEqual(JSON.parse(world.run('approvals', 'show', id, '--json')).script.waits, [3]);
      await by(page, 'approve').click();
      await by(page, 'confirm-approve').click();
      await by(page, 'settled').waitFor();
      await result;
      // The script ended, and its text went with it.
      assert.equal(JSON.parse(world.run('approvals', 'show', id, '--json')).script ?? null, null);
      // The call has a time for each gate, and the script its calls as a waterfall.
      await by(page, 'settled').getByRole('link').click();
      await by(page, 'gates').waitFor();
      const times = await page.locator('.gates .took').allInnerTexts();
      assert.ok(times.length >= 8 && times.every((time) => /^\d.* (µs|ms|s)$/.test(time)), JSON.stringify(times));
      assert.match(await by(page, 'waterfall').innerText(), /waiting for a person/);
      await by(page, 'entry-view').getByRole('link', { name: 'codecall_execute' }).click();
      await by(page, 'children').waitFor();
      assert.equal(await by(page, 'children').locator('.fall-row').count(), 3);
    });
  },
};

