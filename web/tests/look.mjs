// Looking at a page: the rules of WCAG, its width, and a picture for a person.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { open, SHOTS, visit } from './world.mjs';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

async function breaches(page) {
  // The policy of the page forbids a script element; evaluating is the debugger's, so axe runs under the real policy.
  await page.evaluate(`${AXE};0`);
  const { violations } = await page.evaluate((rules) => globalThis.axe.run(document, { runOnly: rules }), RULES);
  return violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}

/** Waits until the page has loaded what it shows. */
export async function settle(page) {
  await page.locator('main').waitFor();
  await page.waitForFunction(() => !document.querySelector('[role=status].state') && [...document.querySelectorAll('.editor')].every((editor) => editor.dataset.ready === 'true'));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Adds what is wrong to `wrongs`, and takes a picture. */
export async function look(page, name, wrongs) {
  for (const breach of await breaches(page)) wrongs.push(`${name}: ${breach}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) wrongs.push(`${name}: ${wide} px wider than the screen`);
  fs.mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
}

export async function visitAll(browser, world, routes, { scheme, width, tag, signIn = true }) {
  const page = await open(browser, world, { scheme, width, signIn });
  const wrongs = [];
  for (const [name, address] of Object.entries(routes)) {
    await visit(page, address);
    await settle(page);
    await look(page, `${tag}${name}-${scheme}-${width}`, wrongs);
  }
  assert.deepEqual(page.problems, []);
  assert.deepEqual(wrongs, []);
  await page.context().close();
}

/** A test for both schemes at both widths. */
export function matrix(name, run) {
  const rows = ['light', 'dark'].flatMap((scheme) => [1280, 390].map((width) => [`${name}, ${scheme} at ${width} px`, (browser) => run(browser, scheme, width)]));
  return Object.fromEntries(rows);
}

/** Fails on marks that only markup could leave. */
export async function clean(page) {
  const found = await page.evaluate(() => ({
    images: [...document.querySelectorAll('img')].filter((image) => !image.src.endsWith('/favicon.svg')).length,
    scripts: document.querySelectorAll('script').length,
    handlers: document.querySelectorAll('[onerror], [onload], [onclick]').length,
    links: [...document.querySelectorAll('a[href]')].filter((link) => !/^(#|\/api\/v1\/)/.test(link.getAttribute('href'))).map((link) => link.getAttribute('href')),
    frames: document.querySelectorAll('iframe, object, embed').length,
  }));
  assert.deepEqual(found, { images: 0, scripts: 1, handlers: 0, links: [], frames: 0 });
}
