// Every page in both schemes and at both widths: no rule of WCAG broken, nothing wider than the screen, and a
// picture in target/studio-shots for a person to look at.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { by, open, SHOTS, visit, World } from '../world.mjs';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

const FORECAST = {
  name: 'getForecast',
  description: "Tells tomorrow's weather for a city. Needs FORECAST_API_KEY. Returns {city, high, low, sky}.",
  category: 'WEB',
  tags: ['weather'],
  params: [{ name: 'city', description: 'Name of the city', required: true, type: 'STRING', testValue: 'Lyon' }],
  staticVariables: [{ apiKey: '${FORECAST_API_KEY}' }],
  code: 'const url = `https://api.forecast.example/v1/${encodeURIComponent(city)}`;\nconst reply = await fetch(url, { headers: { Authorization: `Bearer ${apiKey}` } });\nif (!reply.ok) throw new Error(`the forecast answered ${reply.status}`);\nreturn reply.json();',
  codeType: 'Javascript',
  sandboxOverrides: { networkMode: 'allowlist', hostsAllow: ['api.forecast.example'] },
  humanInTheLoop: { mode: 'REQUIRED' },
};
const SETTINGS = `[exposure]
preset = "everything"

[approvals]
wait_seconds = 300

[[rules]]
id = "no-deleting"
effect = "deny"
tools = ["deleteFile"]
reason = "production is frozen"
`;

const ROUTES = {
  home: '/home',
  inbox: '/inbox',
  question: '/inbox/@question',
  tools: '/tools',
  tool: '/tools/getForecast',
  editor: '/tools/getForecast/edit',
  document: '/tools/getForecast/edit?view=document',
  publish: '/tools/getForecast/publish',
  exposure: '/tools?drawer=exposure',
  import: '/tools?drawer=import',
  servers: '/servers',
  'add-server': '/servers/add',
  inspector: '/inspector/countWords',
  script: '/inspector?mode=script',
  audit: '/audit',
  entry: '/audit/@call',
  verify: '/audit?verify=1',
  policy: '/policy',
  rehearse: '/policy/edit',
  callers: '/callers/researcher',
  numbers: '/numbers',
  secrets: '/secrets',
  connect: '/connect',
  health: '/health',
  'not-found': '/nowhere',
};

async function breaches(page) {
  // The policy of the page forbids a script element; evaluating is the debugger's, so axe runs under the real policy.
  await page.evaluate(`${AXE};0`);
  const { violations } = await page.evaluate((rules) => globalThis.axe.run(document, { runOnly: rules }), RULES);
  return violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}

/** Waits until the page has loaded what it shows. */
async function settle(page) {
  await page.locator('main').waitFor();
  await page.waitForFunction(() => !document.querySelector('[role=status].state') && [...document.querySelectorAll('.editor')].every((editor) => editor.dataset.ready === 'true'));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function look(page, name, wrongs) {
  for (const breach of await breaches(page)) wrongs.push(`${name}: ${breach}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) wrongs.push(`${name}: ${wide} px wider than the screen`);
  fs.mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
}

async function visitAll(browser, world, names, { scheme, width, tag }) {
  const page = await open(browser, world, { scheme, width });
  const wrongs = [];
  for (const [name, address] of Object.entries(ROUTES)) {
    await visit(page, address.replace(/@(\w+)/, (_, what) => names[what]));
    await settle(page);
    await look(page, `${tag}${name}-${scheme}-${width}`, wrongs);
  }
  assert.deepEqual(page.problems, []);
  assert.deepEqual(wrongs, []);
  await page.context().close();
}

/** A server in use: calls done, refused and failed, and questions that wait. */
async function busy() {
  const world = await World.start({ settings: SETTINGS, files: { 'tools/getForecast.json': JSON.stringify(FORECAST, null, 2) } });
  const client = await world.client('researcher');
  const builder = await world.client('builder');
  for (let round = 1; round <= 6; round++) {
    await client.callTool({ name: 'countWords', arguments: { text: 'word '.repeat(round) } });
    await builder.callTool({ name: 'evaluateExpression', arguments: { expression: `${round} / 2` } });
  }
  await client.callTool({ name: 'evaluateExpression', arguments: { expression: '1 +' } }).catch(() => {});
  await builder.callTool({ name: 'deleteFile', arguments: { path: 'reports/q3.md' } }).catch(() => {});
  await client.callTool({ name: 'codecall_execute', arguments: { script: "const a = await callTool('countWords', { text: 'one two' });\nreturn await callTool('evaluateExpression', { expression: `${a.words} * 21` });" } });
  void client.callTool({ name: 'writeTextFile', arguments: { path: 'notes/minutes.md', text: 'Dear all,\nplease find the minutes of yesterday below.\n\n1. The frozen release thaws on Monday.\n2. Nobody deletes \u202ereports.\n'.repeat(3) } }, undefined, { timeout: 600_000 }).catch(() => {});
  void builder.callTool({ name: 'writeTextFile', arguments: { path: 'build.log', text: 'ok' } }, undefined, { timeout: 600_000 }).catch(() => {});
  return world;
}

async function names(browser, world) {
  const page = await open(browser, world);
  await visit(page, '/inbox');
  await by(page, 'question').nth(1).waitFor();
  const questions = await by(page, 'question').evaluateAll((rows) => rows.map((row) => row.getAttribute('href').split('/')[2].split('?')[0]));
  const calls = world.audit().filter((row) => (row.tool ?? row.name) === 'codecall_execute');
  await page.context().close();
  return { question: questions[0], call: calls[0].id };
}

const matrix = (run) => Object.fromEntries(['light', 'dark'].flatMap((scheme) => [1280, 390].map((width) => [`${scheme} at ${width} px`, (browser) => run(browser, scheme, width)])));

let shared;
export const tests = {
  ...Object.fromEntries(
    Object.entries(matrix(async (browser, scheme, width) => {
      shared ??= await busy().then(async (world) => ({ world, names: await names(browser, world) }));
      await visitAll(browser, shared.world, shared.names, { scheme, width, tag: '' });
    })).map(([name, test]) => [`in use, ${name}`, test]),
  ),

  async 'the sign-in, in both schemes and at 360 px'(browser) {
    const wrongs = [];
    for (const scheme of ['light', 'dark']) {
      const page = await open(browser, shared.world, { scheme, width: 360, signIn: false });
      await by(page, 'sign-in').waitFor();
      await look(page, `sign-in-${scheme}-360`, wrongs);
      await page.context().close();
    }
    assert.deepEqual(wrongs, []);
    await shared.world.end();
  },

  async 'with nothing in it, every page says what would be there'(browser) {
    const world = await World.start({ settings: '[exposure]\npreset = "starter"\n' });
    try {
      const page = await open(browser, world);
      const wrongs = [];
      for (const name of ['home', 'inbox', 'servers', 'audit', 'policy', 'numbers', 'callers']) {
        await visit(page, `/${name}`);
        await settle(page);
        await look(page, `empty-${name}-light-1280`, wrongs);
        if (name !== 'home' && name !== 'callers') assert.equal(await by(page, 'empty').first().isVisible(), true, name);
      }
      assert.deepEqual(wrongs, []);
      assert.deepEqual(page.problems, []);
    } finally {
      await world.end();
    }
  },
};
