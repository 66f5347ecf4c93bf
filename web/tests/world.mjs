// A Ringfence of its own for each test: a fresh home, a real `ringfence serve`, real clients, and a browser
// that is signed in.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.RINGFENCE ?? path.join(root, 'target/debug/ringfence');
export const SHOTS = path.join(root, 'target/studio-shots');

/** Far longer than anything here takes; a test that waits so long has failed. */
export const PATIENCE_MS = 20_000;

const SETTINGS = `[exposure]
preset = "everything"

[approvals]
wait_seconds = 40
`;

export class World {
  static async start({ settings = SETTINGS, files = {} } = {}) {
    const world = new World();
    world.home = fs.mkdtempSync(path.join(os.tmpdir(), 'ringfence-studio-'));
    fs.writeFileSync(path.join(world.home, 'ringfence.toml'), settings);
    for (const [name, text] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(world.home, name)), { recursive: true });
      fs.writeFileSync(path.join(world.home, name), text);
    }
    world.clients = [];
    await world.serve('127.0.0.1:0');
    return world;
  }

  /** Starts the server; again after `stop`, at the same address. */
  async serve(listen) {
    this.child = spawn(program, ['serve', '--json', '--print-code', '--listen', listen], { env: this.environment(), stdio: ['ignore', 'pipe', 'pipe'] });
    this.errors = '';
    this.child.stderr.on('data', (text) => (this.errors += text));
    const lines = readline.createInterface({ input: this.child.stdout });
    const first = await new Promise((resolve, reject) => {
      lines.once('line', resolve);
      this.child.once('error', reject);
      this.child.once('exit', () => reject(new Error(`serve ended: ${this.errors}`)));
    });
    lines.on('line', () => {});
    const said = JSON.parse(first);
    this.url = said.url;
    this.studio = said.studio.url.replace(/\/$/, '');
    this.code = said.studio.code;
  }

  environment() {
    return { PATH: process.env.PATH, HOME: this.home, RINGFENCE_HOME: this.home, LANG: 'C.UTF-8' };
  }

  /** A command of the program in this home. */
  run(...words) {
    return execFileSync(program, words, { env: this.environment(), encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** A new one-time code for the running server. */
  freshCode() {
    return JSON.parse(this.run('studio', '--json', '--no-open', '--url', `${this.studio}/`)).code;
  }

  /** A real MCP client with a key of its own. */
  async client(name) {
    const { Client, StreamableHTTPClientTransport } = await sdk();
    const key = this.run('keys', 'add', name).trim().split('\n').at(-1).trim();
    const client = new Client({ name, version: '1.0.0' }, { capabilities: {} });
    await client.connect(new StreamableHTTPClientTransport(new URL(this.url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));
    this.clients.push(client);
    // A test that fails before its call has ended leaves the call behind; that is no second failure.
    const callTool = client.callTool.bind(client);
    client.callTool = (...words) => {
      const result = callTool(...words);
      result.catch(() => {});
      return result;
    };
    return client;
  }

  /** Every record of the audit log, newest first. */
  audit(...filters) {
    return JSON.parse(this.run('audit', 'list', '--json', ...filters));
  }

  async stop() {
    if (this.child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 5000);
    await ended;
    clearTimeout(timer);
  }

  async end() {
    for (const client of this.clients) await client.close().catch(() => {});
    await this.stop();
    fs.rmSync(this.home, { recursive: true, force: true });
  }
}

/** The TypeScript SDK of MCP, as `cargo xtask peers` installed it. */
async function sdk() {
  const require = createRequire(path.join(root, 'target/peers/node/package.json'));
  const { Client } = await import(require.resolve('@modelcontextprotocol/sdk/client/index.js'));
  const { StreamableHTTPClientTransport } = await import(require.resolve('@modelcontextprotocol/sdk/client/streamableHttp.js'));
  return { Client, StreamableHTTPClientTransport };
}

/** A page of a browser that fails the test when the page reports an error. */
export async function open(browser, world, { scheme = 'light', width = 1280, signIn = true } = {}) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 800 }, serviceWorkers: 'block' });
  if (process.env.STUDIO_DEV && world instanceof World) await fromFolder(context);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(String(error)));
  page.on('console', (message) => {
    // A refused request is said by the page itself, in words.
    if (message.type() === 'error' && !/Failed to load resource|net::ERR_/.test(message.text())) page.problems.push(message.text());
  });
  page.on('dialog', (dialog) => {
    page.problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(world.studio);
  if (signIn) await enter(page, world);
  return page;
}

/** While one writes the page: its files from target/studio, under the server's own headers, so that the program need not
 *  be built for each try. */
async function fromFolder(context) {
  await context.route(/^http:\/\/[^/]+\/(?:assets\/.*|favicon.*)?$/, async (route) => {
    const name = new URL(route.request().url()).pathname;
    const file = path.join(root, 'target/studio', name === '/' ? 'index.html' : name);
    const answer = await route.fetch({ url: new URL('/', route.request().url()).href }).catch(() => undefined);
    if (!answer) return void (await route.abort());
    const headers = answer.headers();
    await route.fulfill({ path: file, headers: { 'content-security-policy': headers['content-security-policy'] ?? '' }, contentType: { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }[path.extname(file)] ?? 'text/html' });
  });
}

export async function enter(page, world) {
  const code = world.code ?? world.freshCode();
  world.code = undefined;
  await by(page, 'code').fill(code);
  await by(page, 'enter').click();
  await page.locator('[data-test=connection].live').waitFor();
}

/** Waits until something holds; a test that waits too long has failed. */
export async function until(holds) {
  const end = Date.now() + PATIENCE_MS;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`never: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export const by = (page, name) => page.locator(`[data-test="${name}"]`);

export async function visit(page, address) {
  await page.evaluate((to) => (location.hash = to), `#${address}`);
}

/** The text of the editor with this name. */
export const editor = (page, name) => by(page, name).locator('.cm-content');

/** Replaces the text of an editor as a person would: by keys. */
export async function type(page, name, text) {
  const content = editor(page, name);
  await content.click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(text);
}
