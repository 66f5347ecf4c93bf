// A tool from nothing to published and called by a real client, with its risk moving on the way.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { by, editor, enter, open, type, visit, World } from '../world.mjs';

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
  async 'a tool is written, tested, published and called by a client'(browser) {
    await inWorld(browser, async ({ world, page }) => {
      await visit(page, '/tools');
      await by(page, 'new-tool').click();
      await by(page, 'name').fill('shout');
      await by(page, 'description').fill('Writes a text in capitals. Needs who. Returns {loud}.');
      await type(page, 'code-editor', 'return { loud: String(who).toUpperCase() };');
      await by(page, 'risk-now').and(page.locator('[data-level=L0]')).waitFor();
      // Allowing a host moves the badge; taking it back moves it back.
      await by(page, 'network').selectOption('allowlist');
      await by(page, 'hosts').fill('api.example.com');
      await by(page, 'hosts').blur();
      await by(page, 'risk-now').and(page.locator('[data-level=L3]')).waitFor();
      assert.match(await by(page, 'risk').innerText(), /host/);
      assert.equal(await by(page, 'approval').inputValue(), 'REQUIRED', 'the approval follows the risk');
      await by(page, 'hosts').fill('');
      await by(page, 'hosts').blur();
      await by(page, 'network').selectOption('');
      await by(page, 'risk-now').and(page.locator('[data-level=L0]')).waitFor();
      await page.waitForFunction(() => document.querySelector('[data-test=approval]').value === 'DISABLED');
      // One truth: the document shows what the form and the code editor wrote.
      await page.getByRole('tab', { name: 'Document' }).click();
      assert.match(await editor(page, 'document-editor').innerText(), /toUpperCase/);
      await page.getByRole('tab', { name: 'Form and code' }).click();
      await by(page, 'run-test').click();
      await by(page, 'test-result').waitFor();
      assert.equal(await by(page, 'test-result').getAttribute('data-ok'), 'true', await by(page, 'test-section').innerText());
      await by(page, 'go-publish').click();
      await by(page, 'publish-now').click();
      await by(page, 'published').waitFor();
      const client = await world.client('agent');
      const result = await client.callTool({ name: 'shout', arguments: { who: 'ada' } });
      assert.match(JSON.stringify(result), /ADA/);
    });
  },

  async 'unknown fields and the order of a document survive the form'(browser) {
    const text = '{\n  "codeType": "Javascript",\n  "name": "kept",\n  "description": "Keeps. Returns {a}.",\n  "params": [],\n  "code": "return { a: 1 };",\n  "updateTimestamp":   5\n}\n';
    await inWorld(
      browser,
      async ({ world, page }) => {
        await visit(page, '/tools/kept/edit');
        await by(page, 'description').fill('Keeps more. Returns {a}.');
        await by(page, 'save').click();
        await by(page, 'saved').filter({ hasText: /^saved$/ }).waitFor();
        const file = fs.readFileSync(path.join(world.home, 'tools/kept.json'), 'utf8');
        assert.equal(file, text.replace('Keeps.', 'Keeps more.'));
      },
      { files: { 'tools/kept.json': text } },
    );
  },

  async 'findings stand in the gutter, in the words of the server'(browser) {
    await inWorld(browser, async ({ page }) => {
      await visit(page, '/tools/new');
      // In the document: a type that does not exist, with the server's place and fix.
      await page.getByRole('tab', { name: 'Document' }).click();
      const text = JSON.stringify({ name: 'odd', description: 'Is odd. Returns {a}.', params: [{ name: 'a', type: 'String', required: true, testValue: 'x' }], code: 'const b = 1;\nthrow new Error("on line two");', codeType: 'Javascript' }, null, 2);
      await type(page, 'document-editor', text);
      await by(page, 'document-editor').locator('.cm-lint-marker-error').waitFor();
      assert.match(await by(page, 'findings').innerText(), /must be STRING/);
      assert.equal(await by(page, 'go-publish').isEnabled(), false);
      await type(page, 'document-editor', text.replace('String', 'STRING'));
      await by(page, 'document-editor').locator('.cm-lint-marker-error').waitFor({ state: 'detached' });
      // In the code: where a test run threw.
      await page.getByRole('tab', { name: 'Form and code' }).click();
      await by(page, 'run-test').click();
      await by(page, 'test-result').waitFor();
      assert.equal(await by(page, 'test-result').getAttribute('data-ok'), 'false');
      await by(page, 'code-editor').locator('.cm-lint-marker-error').waitFor();
    });
  },

  async 'the globals that exist are completed'(browser) {
    await inWorld(browser, async ({ page }) => {
      await visit(page, '/tools/new');
      await type(page, 'code-editor', '');
      await page.keyboard.type('fet');
      await by(page, 'code-editor').locator('.cm-tooltip-autocomplete').waitFor();
      assert.match(await by(page, 'code-editor').locator('.cm-tooltip-autocomplete').innerText(), /fetch/);
    });
  },

  async 'lowering oversight asks, raising it does not'(browser) {
    await inWorld(browser, async ({ page }) => {
      await visit(page, '/tools/new');
      await by(page, 'risk-now').waitFor();
      await by(page, 'approval').selectOption('REQUIRED');
      assert.equal(await by(page, 'oversight').count(), 0);
      await by(page, 'approval').selectOption('DISABLED');
      await by(page, 'oversight').waitFor();
      await page.getByRole('tab', { name: 'Document' }).click();
      assert.match(await editor(page, 'document-editor').innerText(), /REQUIRED/, 'not before it is confirmed');
      await page.getByRole('tab', { name: 'Form and code' }).click();
      await by(page, 'approval').selectOption('DISABLED');
      await by(page, 'lower').click();
      await page.getByRole('tab', { name: 'Document' }).click();
      assert.match(await editor(page, 'document-editor').innerText(), /DISABLED/);
    });
  },

  async 'a reload and the end of a session lose nothing that was typed'(browser) {
    await inWorld(browser, async ({ world, page }) => {
      await visit(page, '/tools/new');
      await by(page, 'name').fill('halfDone');
      await type(page, 'code-editor', 'return "typed before the reload";');
      await page.reload();
      await by(page, 'restored').waitFor();
      assert.match(await editor(page, 'code-editor').innerText(), /typed before the reload/);
      // Another browser signs everybody out in the middle of typing.
      const other = await open(browser, world);
      await by(other, 'who').click();
      await by(other, 'sign-out-all').click();
      await by(other, 'sign-in').waitFor();
      await page.getByText('Your session ended').waitFor();
      await enter(page, world);
      assert.match(await editor(page, 'code-editor').innerText(), /typed before the reload/);
      assert.equal(await by(page, 'name').inputValue(), 'halfDone');
      await by(page, 'save').click();
      await by(page, 'saved').filter({ hasText: /^saved$/ }).waitFor();
      await other.context().close();
    });
  },

  async 'exposure is previewed, applied and seen by a client'(browser) {
    await inWorld(
      browser,
      async ({ world, page }) => {
        const client = await world.client('agent');
        const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
        assert.ok(!(await names()).includes('writeTextFile'));
        await visit(page, '/tools?drawer=exposure');
        await by(page, 'expose-writeTextFile').check();
        await by(page, 'exposure-preview').waitFor();
        await by(page, 'apply-exposure').click();
        await by(page, 'exposure-preview').waitFor({ state: 'detached' });
        assert.ok((await names()).includes('writeTextFile'));
        assert.match(fs.readFileSync(path.join(world.home, 'ringfence.toml'), 'utf8'), /writeTextFile/);
      },
      { settings: '[exposure]\npreset = "starter"\n' },
    );
  },
};

