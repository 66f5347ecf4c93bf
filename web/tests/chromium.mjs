// A browser for the tests: the one of this machine, or Debian's, unpacked into target/peers without root.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../target/peers/chromium');
const program = path.join(folder, 'usr/lib/chromium/chromium');

// Nothing but the test's own server is reached, and nothing runs in the background.
const ARGUMENTS = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-default-apps'];

function find() {
  for (const known of [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']) {
    if (known && fs.existsSync(known)) return { executablePath: known, env: process.env };
  }
  if (!fs.existsSync(program)) install();
  const libraries = ['usr/lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu/pulseaudio', 'usr/lib/aarch64-linux-gnu', 'usr/lib/aarch64-linux-gnu/pulseaudio', 'lib/x86_64-linux-gnu'];
  const search = libraries.map((name) => path.join(folder, name)).filter((name) => fs.existsSync(name));
  return { executablePath: program, env: { ...process.env, LD_LIBRARY_PATH: search.join(':') } };
}

/** Debian's chromium and what of its dependencies is missing here. */
function install() {
  console.log('   Debian\'s chromium is unpacked into target/peers/chromium');
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const apt = (...wanted) => execFileSync('apt-get', wanted, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const plan = () => apt('install', '--print-uris', '--yes', '--no-install-recommends', 'chromium');
  let uris;
  try {
    uris = plan();
  } catch {
    // A machine that never asked for the lists has none.
    apt('update');
    uris = plan();
  }
  const names = [...uris.matchAll(/^'[^']*' ([^_\s]+)_/gm)].map((match) => match[1]);
  if (!names.includes('chromium')) throw new Error('apt has no chromium; install a browser and set CHROMIUM to it');
  apt('download', ...names);
  for (const name of fs.readdirSync(folder).filter((name) => name.endsWith('.deb'))) {
    execFileSync('dpkg', ['-x', path.join(folder, name), folder]);
    fs.rmSync(path.join(folder, name));
  }
}

export async function launch() {
  const { executablePath, env } = find();
  const isRoot = process.getuid?.() === 0;
  return chromium.launch({ executablePath, env, args: [...ARGUMENTS, ...(isRoot ? ['--no-sandbox'] : [])] });
}
