// Rules rehearsed on past calls, then applied; callers paused; secrets written; the rest of the pages' tasks.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { by, editor, open, visit, World } from '../world.mjs';

async function inWorld(browser, run, options) {
  const world = await World.start(options);
  try {
    const page = await open(browser, world);
    await run({ world, page });
    assert.deepEqual(page.problems, []);
  } finally {
    await world.end();
  }
}

export const tests = {
  async 'a rule is rehearsed on past calls, reviewed as a diff and applied'(browser) {
    await inWorld(browser, async ({ world, page }) => {
      const client = await world.client('agent');
      await client.callTool({ name: 'countWords', arguments: { text: 'a b' } });
      await client.callTool({ name: 'countWords', arguments: { text: 'a b c' } });
      await visit(page, '/policy/edit');
      await editor(page, 'policy-editor').click();
      await page.keyboard.press('Control+End');
      await page.keyboard.insertText('\n[[rule]]\nid = "no-counting"\neffect = "deny"\ntools = ["countWords"]\nreason = "counting is over"\n');
      await by(page, 'rehearse').click();
      await by(page, 'rehearsal-summary').waitFor();
      assert.match(await by(page, 'rehearsal').innerText(), /tightened/);
      assert.match(await by(page, 'rehearsal').innerText(), /countWords/);
      await by(page, 'review-change').click();
      await by(page, 'reason').fill('trying it out');
      await by(page, 'apply-rules').click();
      await by(page, 'rules').filter({ hasText: 'no-counting' }).waitFor();
      assert.match(fs.readFileSync(path.join(world.home, 'ringfence.toml'), 'utf8'), /no-counting/);
      const refused = await client.callTool({ name: 'countWords', arguments: { text: 'a' } });
      assert.equal(refused.isError, true);
      assert.match(JSON.stringify(world.audit('--kind', 'notice')), /trying it out/);
    });
  },

  async 'a caller is paused and resumed'(browser) {
    await inWorld(browser, async ({ world, page }) => {
      const client = await world.client('agent');
      const call = () => client.callTool({ name: 'countWords', arguments: { text: 'a' } });
      await call();
      await visit(page, '/callers');
      await page.locator('[data-test=caller][data-name=agent]').click();
      await by(page, 'pause').click();
      await by(page, 'confirm-pause').click();
      await by(page, 'resume').waitFor();
      assert.equal((await call()).isError, true);
      await by(page, 'resume').click();
      await by(page, 'pause').waitFor();
      assert.equal((await call()).isError ?? false, false);
    });
  },

  async 'a key is made and shown once'(browser) {
    await inWorld(browser, async ({ page }) => {
      await visit(page, '/callers');
      await by(page, 'new-key').click();
      await by(page, 'key-name').fill('fresh');
      await by(page, 'make-key').click();
      await by(page, 'made-key').waitFor();
      const key = await by(page, 'made-key').locator('code').innerText();
      assert.ok(key.length > 20);
      await page.reload();
      await page.locator('[data-test=caller][data-name=fresh]').waitFor();
      assert.ok(!(await page.content()).includes(key));
    });
  },

  async 'a secret goes in and never comes back'(browser) {
    await inWorld(browser, async ({ page }) => {
      const value = 'correct-horse-battery-staple-42';
      const seen = [];
      page.on('response', (response) => void response.text().then((text) => seen.push(text), () => {}));
      await visit(page, '/secrets');
      await by(page, 'new-secret').click();
      await by(page, 'secret-name').fill('FORECAST_API_KEY');
      await by(page, 'secret-value').fill(value);
      await by(page, 'save-secret').click();
      await by(page, 'secrets').filter({ hasText: 'FORECAST_API_KEY' }).waitFor();
      assert.match(await by(page, 'secrets').innerText(), /set/);
      assert.ok(!seen.join().includes(value), 'no answer holds it');
      assert.ok(!(await page.content()).includes(value));
      assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(value));
    });
  },

  async 'a tool is called in the inspector, and null, empty and left out differ'(browser) {
    const text = JSON.stringify({ name: 'echoAll', description: 'Says what it got. Returns {got}.', params: [{ name: 'a', type: 'STRING', required: true, testValue: 'x' }, { name: 'b', type: 'STRING', required: false }], code: 'return { got: JSON.stringify({ a, b: b === undefined ? "left out" : b }) };', codeType: 'Javascript' });
    await inWorld(
      browser,
      async ({ world, page }) => {
        world.run('test', 'echoAll');
        world.run('publish', 'echoAll');
        await visit(page, '/inspector/echoAll');
        await page.locator('[data-field=a] input').fill('hello');
        assert.equal(await page.locator('[data-field=b]').getAttribute('data-state'), 'out');
        await by(page, 'run').click();
        await by(page, 'call-result').filter({ hasText: 'left out' }).waitFor();
        await page.locator('[data-field=b] .state-pick').selectOption('value');
        await by(page, 'run').click();
        await page.getByRole('tab', { name: 'Protocol' }).click();
        await by(page, 'call-result').filter({ hasText: '"b": ""' }).waitFor();
        await by(page, 'effect').waitFor();
        assert.ok(JSON.stringify(world.audit()).includes('studio'), 'it came through this door');
      },
      { files: { 'tools/echoAll.json': text } },
    );
  },

  async 'a script runs in the scratchpad and its calls are a tree in the audit'(browser) {
    await inWorld(browser, async ({ page }) => {
      await visit(page, '/inspector?mode=script');
      await by(page, 'run-script').click();
      await by(page, 'script-result').waitFor();
      assert.match(await by(page, 'script-result').innerText(), /countWords/);
      await by(page, 'script-result').getByRole('link', { name: 'audit entry' }).click();
      await by(page, 'children').waitFor();
      assert.match(await by(page, 'children').innerText(), /countWords[\s\S]*evaluateExpression/);
    });
  },

  async 'every page can be reached by the palette'(browser) {
    await inWorld(browser, async ({ page }) => {
      for (const [typed, title] of [['Pol', 'Policy'], ['countWords', 'Tools'], ['verify', 'Audit']]) {
        await page.keyboard.press('Control+k');
        await page.getByRole('combobox', { name: 'Go to' }).fill(typed);
        await page.getByRole('option', { name: new RegExp(typed, 'i') }).first().waitFor();
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { level: 1, name: title }).waitFor();
      }
    });
  },
};
