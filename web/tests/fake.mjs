// A server that does what a test says: it breaks the stream, leaves out an event, answers too late. The real one
// does none of that on command. It serves the built page under the same policy; its answers have the shapes of
// `/api/v1`, and as little in them as the pages need.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const built = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../target/studio');
const MIME = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

export const risk = (level, ...reasons) => ({ level, label: { L0: 'Verified', L3: 'Moderate', L4: 'High', L5: 'Critical' }[level], reasons });

/** The tree of arguments, as the server makes it. */
function tree(name, value, pointer = '') {
  if (typeof value === 'object' && value !== null) {
    const children = Object.entries(value).map(([key, item]) => tree(key, item, `${pointer}/${key}`));
    return { name, pointer, kind: Array.isArray(value) ? 'array' : 'object', text: '', chars: 0, hidden: 0, children };
  }
  return { name, pointer, kind: value === null ? 'null' : typeof value, text: String(value), chars: String(value).length, hidden: 0, children: null };
}

export function question(id, more = {}) {
  const args = { path: 'reports/2026/q3.md', text: 'hello' };
  return {
    id,
    state: 'pending',
    tool: 'writeTextFile',
    caller: 'researcher',
    kind: 'call',
    risk: risk('L4', 'files: reads and writes in the workspace'),
    sentence: 'researcher wants to run writeTextFile',
    askedAtMs: Date.now() - 40_000,
    expiresAtMs: Date.now() + 500_000,
    callId: `0192f3a9-${id}`,
    parentId: null,
    answered: null,
    prompt: 'Write the file?',
    why: 'the tool asks before every call',
    rule: null,
    mayAnswer: 'a person at the terminal or the inbox of this Ringfence',
    argumentsText: JSON.stringify(args),
    arguments: args,
    argumentsTree: tree(null, args),
    patch: [],
    masked: false,
    touches: [{ kind: 'file-write', words: 'writes files in the workspace' }],
    lastApproved: null,
    scopes: [{ scope: 'once', words: 'this call' }, { scope: 'same-arguments', words: 'this tool with these arguments, for an hour' }],
    from: { caller: 'researcher', door: 'mcp', session: true, parent: null },
    stale: false,
    staleWhy: null,
    canAnswer: true,
    cannotWhy: null,
    canChange: true,
    cannotChangeWhy: null,
    revision: `first-${id}`,
    inertMs: 300,
    params: [],
    inputSchema: {},
    ...more,
  };
}

export class Fake {
  static async start() {
    const fake = new Fake();
    fake.questions = [question('a1')];
    fake.streams = new Set();
    fake.seq = 1;
    fake.boot = 'one';
    fake.isIn = true;
    fake.asked = [];
    fake.sent = [];
    fake.routes = fake.table();
    fake.server = http.createServer((request, response) => fake.serve(request, response));
    await new Promise((resolve) => fake.server.listen(0, '127.0.0.1', resolve));
    fake.studio = `http://127.0.0.1:${fake.server.address().port}`;
    return fake;
  }

  table() {
    return {
      'GET /home': () => ({ attention: [], steps: [], perMinute: [], recent: [], counts: { waiting: this.waiting(), tools: 1, exposed: 1, servers: 0, serversHeld: 0, callers: 1 } }),
      'GET /inbox': () => ({ items: this.questions.filter((item) => ['pending', 'approved'].includes(item.state)), waiting: this.waiting(), next: null }),
      'GET /tools': () => ({ items: [], aside: [], exposed: 0, total: 0, categories: [], tags: [] }),
      'GET /callers': () => ({ items: [] }),
      'GET /audit': () => ({ items: [], next: null, filter: {}, empty: null }),
      'GET /servers': () => ({ items: [] }),
    };
  }

  waiting() {
    return this.questions.filter((item) => item.state === 'pending').length;
  }

  /** Sends an event to every page; `skip` leaves some out before it. */
  emit(kind, data = {}, skip = 0) {
    this.seq += 1 + skip;
    const item = kind === 'inbox' ? this.questions.find((known) => known.id === data.id) : undefined;
    if (item) data = { ...data, item };
    for (const stream of this.streams) stream.write(`event: ${kind}\ndata: ${JSON.stringify({ seq: this.seq, boot: this.boot, ...data })}\n\n`);
  }

  /** Ends every stream, and refuses new ones until `isUp` again. */
  breakStreams() {
    for (const stream of this.streams) stream.destroy();
    this.streams.clear();
  }

  serve(request, response) {
    const [address] = request.url.split('?');
    response.setHeader('content-security-policy', POLICY);
    if (this.isDown) return void response.destroy();
    if (!address.startsWith('/api/v1/')) return void this.file(address, response);
    const name = address.slice('/api/v1'.length);
    if (name === '/events') return void this.stream(response);
    let body = '';
    request.on('data', (text) => (body += text));
    request.on('end', () => {
      const { status, value } = this.answer(request, name, body ? JSON.parse(body) : {});
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    });
  }

  file(address, response) {
    const file = path.join(built, address === '/' ? 'index.html' : path.normalize(address));
    if (!fs.existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': MIME[path.extname(file)] });
    response.end(fs.readFileSync(file));
  }

  stream(response) {
    if (!this.isIn) return void response.writeHead(401).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.streams.add(response);
    response.on('close', () => this.streams.delete(response));
    response.write(`event: hello\ndata: ${JSON.stringify({ seq: this.seq, boot: this.boot })}\n\n`);
  }

  answer(request, name, body) {
    this.asked.push(`${request.method} ${name}`);
    if (name === '/session' && request.method === 'POST') this.isIn = true;
    if (!this.isIn) return failure(401, 'studio.session', 'sign in first', { signIn: { code: true, oauth: null } });
    if (name === '/session') return { status: 200, value: SESSION };
    if (request.method !== 'GET') this.sent.push({ name, body, csrf: request.headers['x-ringfence-csrf'], type: request.headers['content-type'] });
    const own = this.routes[`${request.method} ${name}`];
    if (own) return { status: 200, value: typeof own === 'function' ? own(body) : own };
    const [, id, act] = /^\/inbox\/([^/]+)(?:\/(\w+))?$/.exec(name) ?? [];
    const at = this.questions.find((item) => item.id === id);
    if (!at) return failure(404, 'studio.unknown', `there is no ${name}`, null);
    if (act === 'answer') {
      if (at.state !== 'pending' || body.revision !== at.revision) return failure(409, 'studio.conflict', 'already answered by ada at 12:04', { current: at });
      this.settle(id, body.answer === 'approve' ? 'used' : 'declined', 'owner');
    }
    return { status: 200, value: this.questions.find((item) => item.id === id) };
  }

  settle(id, state, by) {
    this.questions = this.questions.map((item) => (item.id === id ? { ...item, state, revision: `settled-${id}`, answered: { by, channel: 'studio', atMs: Date.now(), scope: 'once', note: null, uses: 1, usedByCall: null, changed: null } } : item));
    this.emit('inbox', { id, state, waiting: this.waiting() });
  }

  end() {
    this.breakStreams();
    this.server.closeAllConnections();
    this.server.close();
  }
}

const SESSION = { person: { name: 'owner', role: 'owner' }, csrf: 'of-this-session', startedAtMs: 0, expiresAtMs: Date.now() + 3e7, idleSeconds: 3600, server: { version: '0.0.0', home: 'home of ada', url: '', mcpUrl: '' }, can: { approve: true, change: true } };

function failure(status, code, message, details) {
  return { status, value: { error: { code, message, fix: null, details } } };
}
