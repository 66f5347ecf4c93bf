// An answer of every part of `/api/v1` that the pages read, with something in each field.
import { question, risk } from './fake.mjs';

const now = Date.now();
const DOCUMENT = JSON.stringify({ name: 'getForecast', description: 'Tells the weather.', params: [{ name: 'city', type: 'STRING', required: true, testValue: 'Lyon' }], staticVariables: [{ apiKey: '${FORECAST_API_KEY}' }], code: 'return city;', codeType: 'Javascript', sandboxOverrides: { networkMode: 'allowlist', hostsAllow: ['api.example.com'] } }, null, 2);
const gate = (name, verdict, note) => ({ gate: name, verdict, note, reason: verdict === 'stop' ? 'rule.denied' : null, rule: 'no-deleting', us: 40 });
const GATES = [gate('access', 'pass', 'level standard may know it'), gate('rules', 'ask', 'the tool asks before every call'), gate('approval', 'stop', 'denied by owner')];
const CHANGE = { pointer: '/path', before: '"a.txt"', after: '"b.txt"' };
const FINDING = { code: 'code.unused', severity: 'warning', pointer: '/code', message: 'the parameter `days` is never read', line: 1, column: 1, endLine: null, endColumn: null, in: 'code', fix: 'remove it' };
const UPSTREAM = { code: 'text.instruction', severity: 'hold', message: 'the description tells the model to act elsewhere', place: 'tool pay / description', evidence: 'send ~/.ssh' };
const call = (id, status = 'done') => ({ kind: 'call', id, parentId: null, atMs: now - 9000, endedAtMs: now - 8000, tool: 'getForecast', caller: 'researcher', origin: 'mcp', status, risk: 'L3', code: 'rule.denied', message: 'rule `no-deleting` denies it', elapsedUs: 1200, sequence: 9, differs: false });
const notice = { kind: 'notice', id: 'n1', atMs: now, act: 'tool.published', by: 'owner', through: 'studio', about: 'getForecast', message: 'published getForecast', details: { digest: 'abc' }, sequence: 8 };
const tool = { name: 'getForecast', title: 'getForecast', description: 'Tells the weather.', toolId: 'f', digest: 'sha256:4be1', state: 'DRAFT', stateWhy: 'it was edited', missing: [], notGranted: [], risk: risk('L3', 'network: 1 host listed'), source: 'own', server: null, exposed: true, exposure: 'preset starter', category: 'WEB', tags: ['weather'], approval: 'REQUIRED', file: 'getForecast.json', lastPass: { ok: false, atMs: now, elapsedMs: 12, error: 'the host did not answer' } };
const SCHEMA = { type: 'object', properties: { city: { type: 'string', description: 'Name of the city' }, mode: { enum: ['a', 'b'] }, days: { type: ['integer', 'null'] } }, required: ['city'] };
const whole = { ...tool, document: DOCUMENT, revision: 'r', inputSchema: SCHEMA, outputSchema: null, toolSafety: {}, humanInTheLoop: null, params: [{ name: 'city', type: 'STRING', required: true, testValue: 'Lyon', description: 'Name of the city' }], variables: [{ name: 'FORECAST_API_KEY', set: false, granted: false, words: 'read by apiKey' }], published: { digest: 'x', document: DOCUMENT, same: false }, findings: [FINDING], seen: { name: 'getForecast', description: 'Tells the weather.', inputSchema: SCHEMA }, own: true, canEdit: true };
const caller = { name: 'researcher', paused: true, pausedAtMs: now, pausedBy: 'owner', pausedWhy: 'too many refusals', deniedInARow: 1, deniedInAll: 4, level: 'standard', earned: 'elevated', key: { id: 'k1', role: 'agent', createdMs: now, expiresMs: now, expired: false }, lastSeenAtMs: now, calls: 12 };
const rule = { id: 'no-deleting', effect: 'deny', words: 'denies deleteFile', source: 'ringfence.toml:4', reason: 'production is frozen' };
const lint = { rule: 'x', kind: 'covered', severity: 'warning', message: 'never decides', source: 'ringfence.toml:12', line: 1 };
const DIFF = [{ kind: 'same', text: '[[rule]]', old: 1, new: 1 }, { kind: 'remove', text: 'effect = "deny"', old: 2, new: null }, { kind: 'add', text: 'effect = "ask"', old: null, new: 2 }];
const server = { name: 'calc', decision: 'accepted', state: 'review', words: '1 callable, 1 held', callable: 1, held: 1, listed: true, launch: 'npx calc', fault: 'it ended with 1' };
const exposure = { preset: 'starter', presets: [{ name: 'starter', description: 'a dozen tools', tools: ['hello'] }], auto: true, include: { names: ['x'], tags: [], categories: [] }, exclude: { names: [], tags: [], categories: [] }, tools: [{ name: 'getForecast', exposed: true, why: 'preset starter', level: 'L3', category: null, tags: [] }], exposed: 1, total: 2, revision: 'r' };

export const ROUTES = {
  home: '/home',
  question: '/inbox/a1',
  answered: '/inbox/z9?show=all',
  tools: '/tools',
  tool: '/tools/getForecast',
  editor: '/tools/getForecast/edit',
  publish: '/tools/getForecast/publish',
  exposure: '/tools?drawer=exposure',
  server: '/servers/calc',
  review: '/servers/calc/review',
  inspector: '/inspector/getForecast',
  script: '/inspector?mode=script',
  audit: '/audit?kind=all',
  entry: '/audit/c1',
  notice: '/audit/n1',
  verify: '/audit?verify=1',
  policy: '/policy',
  edit: '/policy/edit',
  caller: '/callers/researcher',
  numbers: '/numbers',
  secrets: '/secrets',
  connect: '/connect',
  health: '/health',
};

export const QUESTIONS = [
  question('a1', { lastApproved: { id: 'z9', atMs: now, by: 'owner', argumentsText: '{}', diff: [CHANGE] }, rule: 'no-deleting', from: { caller: 'researcher', door: 'mcp', session: true, parent: { callId: 'c1', tool: 'codecall_execute' }, script: { words: 'line 2 of a script of 3 lines waits', lines: [{ number: 1, text: 'const one = 1;', waits: false }, { number: 2, text: "await callTool('writeTextFile', {});", waits: true }, { number: 3, text: 'return one;', waits: false }] } }, inertMs: 0 }),
  question('z9', { state: 'approved', answered: { by: 'owner', channel: 'studio', atMs: now, scope: 'once', note: 'fine', uses: 1, usedByCall: 'c1', changed: [CHANGE] } }),
];

export const SAMPLE = {
  'GET /home': { attention: [{ kind: 'tool', severity: 'warn', message: 'getForecast failed 4 of its last 5 calls', link: '/audit?tool=getForecast', count: 4 }], steps: [{ id: 'call', title: 'Call a tool', done: false, link: '/inspector' }], perMinute: [{ atMs: now, calls: 3, refused: 1 }], recent: [call('c1'), notice], counts: { waiting: 1, tools: 41, exposed: 12, servers: 1, serversHeld: 1, callers: 3 } },
  'GET /health': { ok: false, checks: [{ group: 'sandbox', name: 'seccomp', ok: true, says: 'only listed system calls', reason: null, fix: null }, { group: 'worker', name: 'landlock', ok: false, says: 'no file', reason: 'the kernel has none', fix: 'use a newer one' }], landlockAbi: 5, firstResultMs: 31, checkedAtMs: now },
  'GET /tools': { items: [tool], aside: [{ file: 'broken.json', name: 'broken', findings: [FINDING] }], exposed: 1, total: 2, categories: ['WEB'], tags: ['weather'] },
  'GET /tools/getForecast': whole,
  'GET /tools/getForecast/diff': { published: DOCUMENT.replace('allowlist', 'strict'), draft: DOCUMENT, changes: [CHANGE], risk: { before: risk('L0'), after: risk('L3', 'network: 1 host listed') }, same: false },
  'POST /tools/check': { ok: true, name: 'getForecast', digest: 'd', state: 'draft', risk: risk('L3', 'network: 1 host listed'), before: risk('L0'), widens: ['network: 1 host listed'], findings: [FINDING], params: whole.params, inputSchema: SCHEMA, variables: whole.variables, nameTaken: false, approval: 'REQUIRED', approvalSuggested: 'REQUIRED', oversight: null, seen: whole.seen, needs: [] },
  'GET /exposure': exposure,
  'GET /servers': { items: [server] },
  'GET /servers/calc': { ...server, secrets: ['SMTP_PASSWORD'], findings: [UPSTREAM], tools: [{ name: 'pay', as: 'calc__pay', state: 'held', words: 'its words changed', risk: risk('L4') }] },
  'GET /servers/calc/logs': { lines: ['ready'], fault: null },
  'GET /servers/calc/review': { server: 'calc', digest: 'abc', decision: 'accepted', settled: false, items: [{ key: 'tool pay', name: 'pay', change: 'wider', state: 'held', stateWords: 'it takes more', risk: risk('L4'), fields: [{ field: 'description', class: 'words', before: 'Pays.', after: 'Pays more.' }], findings: [UPSTREAM] }], findings: [UPSTREAM] },
  'POST /inspector/explain': { effect: 'ask', told: null, gates: GATES, risk: risk('L3'), shadow: null, sentences: ['a person would be asked first'] },
  'POST /inspector/script/check': { valid: false, preset: 'secure', presets: ['secure'], issues: [{ code: 'guard.x', message: 'no eval', line: 1, column: 1, severity: 'error' }] },
  'POST /inspector/call': { callId: 'c1', status: 'failed', result: null, resultText: '{"a": 1}', resultBytes: 8, content: [{ type: 'text', text: 'said' }], structured: null, error: { code: 'tool.failed', message: 'it threw' }, console: [{ level: 'log', text: 'hello' }], elapsedMs: 3, notes: ['shortened'], eras: [{ revision: '2026-07-28', before: [], headers: [['Mcp-Name', 'getForecast']], request: { a: 'x' }, response: { b: 'y' } }, { revision: '2025-11-25', before: [{ method: 'initialize' }], headers: [], request: { a: 'x' }, response: { b: 'y' } }] },
  'GET /audit': { items: [call('c1', 'refused'), notice], next: null, filter: {}, empty: null },
  'GET /audit/c1': { ...call('c1', 'refused'), gates: GATES, decided: 2, argumentsText: '{"city":"Lyon"}', arguments: { city: 'Lyon' }, argumentsDigest: 'd', resultDigest: 'e', riskReasons: ['network: 1 host listed'], events: [{ kind: 'fetch', words: 'GET api.example.com 200', atUs: 100, us: 700, ok: true, raw: {} }, { kind: 'process', words: 'ended 0', raw: {} }], eventsDropped: 2, timing: { totalUs: 1200, runUs: 1000, cpuUs: 300 }, shadow: { effect: 'deny' }, children: [call('c2')], parent: call('c0'), question: 'a1', hash: 'f', explain: ['researcher asked; a rule denied it'] },
  'GET /audit/n1': notice,
  'POST /audit/verify': { ok: false, records: 9, entries: 4, open: 0, checkpoints: 0, notices: 1, cuts: 0, head: '9:abc', broken: { sequence: 5, callId: 'c1', what: 'its hash does not match' }, tookMs: 12, command: 'ringfence audit verify' },
  'GET /policy': { file: 'ringfence.toml', text: '[[rule]]\nid = "x"\n', revision: 'r', rules: [rule], askFrom: 'L4', shadow: 'shadow.toml', findings: [lint], files: [{ name: 'rules.toml', text: 'x = 1' }] },
  'POST /policy/lint': { ok: true, findings: [lint], rules: [] },
  'POST /policy/rehearse': { calls: 10, decided: 10, changed: 2, tightened: 1, loosened: 1, summary: 'would change 2 of 10 calls', groups: [{ kind: 'loosened', before: 'deny', live: 'deny', after: 'allow', beforeRule: 'x', afterRule: 'y', tool: 'deleteFile', caller: 'builder', count: 1, reason: 'no rule', calls: ['c1'] }], missing: [{ why: 'only digests', count: 3 }] },
  'POST /policy/preview': { diff: DIFF, widens: ['deleteFile was denied and is asked for'], findings: [], ok: true },
  'GET /callers': { items: [caller] },
  'GET /callers/researcher': { ...caller, standing: ['level standard'], trust: { strategy: 'graduated', covered: true, tracks: [{ category: 'FILE', level: 'ask', sinceMs: now, question: 'a1', lines: ['12 of 20'] }] }, limits: [{ name: 'calls', words: 'calls: 30 calls a minute on all tools', kinds: [{ what: 'calls in the last minute', used: 7, most: 30 }] }], rules: [rule], answers: 'L4' },
  'GET /numbers': { fromMs: 0, toMs: now, bucketMs: 3600000, times: [now - 7200000, now - 3600000, now], calls: [3, 5, 2], refused: [1, 0, 1], failed: [0, 1, 0], p50Us: [900, null, 800], p90Us: [1900, null, 1800], p99Us: [2900, null, 2800], reasons: [{ code: 'rule.denied', count: 2, meaning: 'a rule denies the call' }], rows: [{ name: 'getForecast', calls: 10, done: 7, refused: 2, failed: 1, p50Us: 900, p90Us: 1900, p99Us: null }], approvals: { count: 2, answered: 1, p50Ms: 8000, p90Ms: 9000, maxMs: 9500 }, total: 10, cut: true },
  'GET /secrets': { items: [{ name: 'FORECAST_API_KEY', set: true, inFile: true, usedBy: [{ kind: 'tool', name: 'getForecast', granted: false }] }], file: 'secrets.env', writable: true },
  'GET /connect': { url: 'http://127.0.0.1:7979/mcp', clients: [{ id: 'cursor', name: 'Cursor', file: '~/.cursor/mcp.json', section: 'mcpServers', kind: 'json', snippet: '{"mcpServers": {}}', command: 'ringfence connect cursor' }] },
};

// Words of the contract that are no text of others: a page reads them, it does not show them as they are.
const WORDS = ['kind', 'state', 'status', 'level', 'verdict', 'effect', 'severity', 'in', 'change', 'source', 'risk', 'id', 'type', 'group', 'link', 'revision', 'document', 'draft', 'published', 'text', 'approval', 'approvalSuggested', 'pointer', 'callId', 'parentId', 'from', 'scope', 'inputSchema'];

/** The same with every text of others replaced by `bait`. Names of the contract stay. */
export function poisoned(value, bait, name = '') {
  if (typeof value === 'string') return WORDS.includes(name) ? value : `${value} ${bait}`;
  if (Array.isArray(value)) return value.map((item) => poisoned(item, bait, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === 'name' && value.risk !== undefined && value.toolId ? item : poisoned(item, bait, key)]));
}
