// The tests of the Studio: its units, its size and its sameness, then every page in a browser. Prints what
// `cargo xtask test` adds up. `node tests/run.mjs inbox` runs the browser tests whose names hold the word.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from './chromium.mjs';
import { units } from './unit.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const only = process.argv[2];
let passed = 0;
let failed = 0;

async function check(name, test) {
  const began = Date.now();
  try {
    await test();
    passed++;
    console.log(`test ${name} ... ok (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`test ${name} ... FAILED\n${error?.stack ?? error}`);
  }
}

/** Every file of a folder, by name. */
function contents(folder) {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()
    .map((file) => [path.relative(folder, file), fs.readFileSync(file, 'base64')]);
}

if (!only) {
  const result = await units(console.log);
  passed += result.passed;
  failed += result.failed;
  await check('build: two builds give the same bytes, and are small enough', () => {
    const folders = [0, 1].map(() => fs.mkdtempSync(path.join(os.tmpdir(), 'studio-build-')));
    for (const folder of folders) execFileSync(process.execPath, [path.join(here, '../build.mjs'), folder], { stdio: 'pipe' });
    const [one, two] = folders.map(contents);
    if (JSON.stringify(one) !== JSON.stringify(two)) throw new Error('two builds differ');
    if (one.length < 20) throw new Error('a build without its files');
    for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
  });
}

const browser = await launch();
for (const file of fs.readdirSync(path.join(here, 'browser')).sort()) {
  const { tests } = await import(path.join(here, 'browser', file));
  const group = path.basename(file, '.mjs');
  for (const [name, test] of Object.entries(tests)) {
    if (!only || `${group}: ${name}`.includes(only)) await check(`${group}: ${name}`, () => test(browser));
  }
}
await browser.close();
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed; 0 ignored; 0 measured; 0 filtered out`);
process.exit(failed ? 1 : 0);
