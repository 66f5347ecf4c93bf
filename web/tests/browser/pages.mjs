// Every page in both schemes and at both widths: no rule of WCAG broken, nothing wider than the screen, and a
// picture in target/studio-shots for a person to look at.
import assert from 'node:assert/strict';
import { look, matrix, settle, visitAll } from '../look.mjs';
import { by, open, visit, World } from '../world.mjs';

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

[[rule]]
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
  const calls = await page.evaluate(async () => (await (await fetch('/api/v1/audit?tool=codecall_execute&kind=call')).json()).items);
  await page.context().close();
  return { question: questions[0], call: calls[0].id };
}

let shared;
export const tests = {
  ...matrix('in use', async (browser, scheme, width) => {
    shared ??= await busy().then(async (world) => ({ world, names: await names(browser, world) }));
    const routes = Object.entries(ROUTES).map(([name, address]) => [name, address.replace(/@(\w+)/, (_, what) => shared.names[what])]);
    await visitAll(browser, shared.world, Object.fromEntries(routes), { scheme, width, tag: '' });
  }),

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
