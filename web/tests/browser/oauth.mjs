// Signing in with an account of an issuer: a real small one, on another port.
import assert from 'node:assert/strict';
import { look } from '../look.mjs';
import { Issuer } from '../issuer.mjs';
import { by, open, visit, World } from '../world.mjs';

async function withIssuer(browser, run) {
  const issuer = await Issuer.start();
  const world = await World.start({ settings: issuer.settings() });
  try {
    const page = await open(browser, world, { signIn: false });
    await run({ issuer, world, page });
    assert.deepEqual(page.problems, []);
    await page.context().close();
  } finally {
    await world.end();
    issuer.end();
  }
}

export const tests = {
  async 'a person signs in with an account and comes back to where they were'(browser) {
    await withIssuer(browser, async ({ issuer, world, page }) => {
      await page.goto(`${world.studio}/#/audit?caller=ann`);
      await by(page, 'oauth').waitFor();
      const wrongs = [];
      await look(page, 'state-sign-in-account-light-1280', wrongs);
      assert.deepEqual(wrongs, []);
      await by(page, 'oauth').click();
      await page.getByRole('button', { name: 'I am Ada' }).click();
      await page.locator('[data-test=connection].live').waitFor();
      assert.equal(await page.evaluate(() => location.href), `${world.studio}/#/audit?caller=ann`);
      assert.match(await by(page, 'who').innerText(), /oauth:ada@example\.com/);
      // No token, code or secret is where a script of the page could read it.
      const readable = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href, document.documentElement.outerHTML, history.length]));
      for (const secret of issuer.secrets) assert.ok(!readable.includes(secret), secret);
      assert.ok(issuer.secrets.length >= 3);
      const [signed] = world.audit('--kind', 'notice').filter((entry) => JSON.stringify(entry).includes('person.signed_in'));
      assert.match(JSON.stringify(signed), /oauth:ada@example\.com/);
    });
  },

  async 'an account without a role is told so, and a code still opens the page'(browser) {
    await withIssuer(browser, async ({ issuer, world, page }) => {
      issuer.roles = [];
      await by(page, 'oauth').click();
      await page.getByRole('button', { name: 'I am Ada' }).click();
      await by(page, 'login-problem').waitFor();
      assert.match(await by(page, 'login-problem').innerText(), /no role here/);
      await by(page, 'code').fill(world.code);
      await by(page, 'enter').click();
      await page.locator('[data-test=connection].live').waitFor();
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
    });
  },

  async 'a session that ends while one types goes on after a login in another tab'(browser) {
    await withIssuer(browser, async ({ page }) => {
      await by(page, 'oauth').click();
      await page.getByRole('button', { name: 'I am Ada' }).click();
      await page.locator('[data-test=connection].live').waitFor();
      await visit(page, '/secrets');
      await by(page, 'new-secret').click();
      await by(page, 'secret-name').fill('HALF_A_NAME');
      await page.context().clearCookies();
      await by(page, 'secret-value').fill('x');
      await by(page, 'save-secret').click();
      await by(page, 'sign-in').waitFor();
      const opened = page.context().waitForEvent('page');
      await by(page, 'oauth').click();
      const second = await opened;
      await second.getByRole('button', { name: 'I am Ada' }).click();
      await second.locator('[data-test=connection]').waitFor();
      await page.bringToFront();
      await page.evaluate(() => dispatchEvent(new Event('focus')));
      await by(page, 'sign-in').waitFor({ state: 'detached' });
      assert.equal(await by(page, 'secret-name').inputValue(), 'HALF_A_NAME');
    });
  },
};
