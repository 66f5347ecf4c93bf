// What happened, found again; and a chain that was tampered with.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { by, open, visit, World } from '../world.mjs';

export const tests = {
  async 'calls are filtered by the address, followed live, explained and exported'(browser) {
    const world = await World.start();
    try {
      const client = await world.client('agent');
      const page = await open(browser, world);
      await visit(page, '/audit');
      await by(page, 'empty').or(by(page, 'entry').first()).first().waitFor();
      await client.callTool({ name: 'countWords', arguments: { text: 'one two' } });
      await by(page, 'entry').filter({ hasText: 'countWords' }).waitFor();
      await client.callTool({ name: 'noSuchTool', arguments: {} }).catch(() => {});
      await by(page, 'entry').filter({ hasText: 'noSuchTool' }).waitFor();
      await by(page, 'filter-tool').fill('countWords');
      await by(page, 'filter-tool').press('Enter');
      await page.waitForFunction(() => location.hash.includes('tool=countWords'));
      await by(page, 'entry').filter({ hasText: 'noSuchTool' }).waitFor({ state: 'detached' });
      await by(page, 'entry').first().click();
      await by(page, 'gates').waitFor();
      assert.match(await by(page, 'entry-view').innerText(), /agent/);
      await page.goBack();
      await by(page, 'entry-view').waitFor({ state: 'detached' });
      // An empty answer says why.
      await visit(page, '/audit?tool=countWords&status=failed');
      await by(page, 'empty').waitFor();
      assert.match(await by(page, 'empty').innerText(), /countWords|failed/);
      const exported = await page.evaluate(async () => (await fetch(document.querySelector('[data-test=export]').href)).text());
      assert.equal(exported.trim(), '', 'the export follows the filter');
      await visit(page, '/audit');
      const whole = await page.evaluate(async () => (await fetch('/api/v1/audit/export?format=jsonl')).text());
      assert.match(whole, /countWords/);
      assert.deepEqual(page.problems, []);
    } finally {
      await world.end();
    }
  },

  async 'a whole chain is verified, a tampered one is not'(browser) {
    const world = await World.start();
    try {
      const client = await world.client('agent');
      for (const text of ['one', 'two', 'three']) await client.callTool({ name: 'countWords', arguments: { text } });
      const page = await open(browser, world);
      await visit(page, '/audit?verify=1');
      await by(page, 'verified').filter({ hasText: 'Whole' }).waitFor();
      const folder = path.join(world.home, 'audit');
      const log = path.join(folder, fs.readdirSync(folder).find((name) => name.endsWith('.log')));
      const text = fs.readFileSync(log, 'utf8');
      assert.ok(text.includes('countWords'));
      fs.chmodSync(log, 0o600);
      const handle = fs.openSync(log, 'r+');
      fs.writeSync(handle, 'countWordz', Buffer.byteLength(text.slice(0, text.indexOf('countWords'))));
      fs.closeSync(handle);
      await by(page, 'verify-again').click();
      await by(page, 'verified').filter({ hasText: 'Broken' }).waitFor();
      assert.match(await by(page, 'verified').innerText(), /record \d+/);
    } finally {
      await world.end();
    }
  },
};
