// A person answers calls of real clients.
import assert from 'node:assert/strict';
import { by, editor, open, type, visit, World } from '../world.mjs';

const ASK = 'writeTextFile';

async function asked(browser, run, options) {
  const world = await World.start(options);
  try {
    const client = await world.client('researcher');
    const page = await open(browser, world);
    await visit(page, '/inbox');
    await run({ world, client, page });
    assert.deepEqual(page.problems, []);
  } finally {
    await world.end();
  }
}

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
      await by(page, 'decide').and(page.locator('[data-inert=false]')).waitFor();
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
      await by(page, 'decide').and(page.locator('[data-inert=false]')).waitFor();
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
      await by(page, 'decide').and(page.locator('[data-inert=false]')).waitFor();
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

  async 'a question waits for a call inside a script'(browser) {
    await asked(browser, async ({ client, page }) => {
      const script = `return await callTool('${ASK}', { path: 'g.txt', text: 'from a script' });`;
      const result = client.callTool({ name: 'codecall_execute', arguments: { script } }, undefined, { timeout: 60_000 }).catch((error) => error);
      await by(page, 'question').first().click();
      assert.match(await by(page, 'question-view').innerText(), /codecall|script/);
      await by(page, 'approve').click();
      await by(page, 'confirm-approve').click();
      await by(page, 'settled').waitFor();
      await result;
    });
  },
};

