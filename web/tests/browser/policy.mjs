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

  async 'the messages of a call are those that a client sends and gets, in both eras'(browser) {
    const world = await World.start();
    try {
      const page = await open(browser, world);
      const key = world.run('keys', 'add', 'wire').trim().split('\n').at(-1).trim();
      const cases = [
        ['countWords', { text: 'one two' }],
        // Refused by its params.
        ['countWords', { text: 7 }],
        // It runs and throws.
        ['evaluateExpression', { expression: '1 +' }],
        ['noSuchTool', {}],
        // The owner is told that a variable is missing; an agent, that there is no such tool.
        ['searchWeb', { query: 'x' }],
      ];
      for (const [tool, args] of cases) {
        const shown = await inspected(page, tool, args);
        assert.equal(shown.length, 2);
        for (const era of shown) {
          const real = await onTheWire(world.url, key, era);
          assert.deepEqual(settled(real), settled(era.response), `${tool} in ${era.revision}`);
        }
      }
    } finally {
      await world.end();
    }
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

/** What the inspector shows of a call, by its own way. */
function inspected(page, tool, args) {
  return page.evaluate(
    async ([name, given]) => {
      const { csrf } = await (await fetch('/api/v1/session')).json();
      const answer = await fetch('/api/v1/inspector/call', { method: 'POST', headers: { 'content-type': 'application/json', 'x-ringfence-csrf': csrf }, body: JSON.stringify({ tool: name, arguments: given }) });
      return (await answer.json()).eras;
    },
    [tool, args],
  );
}

/** Sends the shown messages with the shown headers, and returns the answer to the last one. */
async function onTheWire(url, key, era) {
  const send = async (message, more) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more };
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(message) });
    const text = await answer.text();
    const events = text.split('\n').filter((line) => line.startsWith('data:') && line.length > 6).map((line) => JSON.parse(line.slice(5)));
    return { session: answer.headers.get('mcp-session-id'), message: text.startsWith('{') ? JSON.parse(text) : events.find((event) => 'result' in event || 'error' in event) };
  };
  let session;
  for (const message of era.before) session ??= (await send(message, session ? { 'mcp-session-id': session } : {})).session;
  const headers = Object.fromEntries(era.headers);
  if ('Mcp-Session-Id' in headers) headers['Mcp-Session-Id'] = session;
  return (await send(era.request, headers)).message;
}

/** Two calls have two ids. */
function settled(message) {
  return JSON.parse(JSON.stringify(message, (name, value) => (name === 'ringfence/callId' ? 'an id' : value)));
}
