// The units of the page, by node:test. esbuild bundles each file, so that they run on every Node.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from 'node:test';
import * as esbuild from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));

/** Runs all of them; returns how many passed and failed. */
export async function units(report) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'studio-units-'));
  const names = fs.readdirSync(path.join(here, 'unit')).filter((name) => name.endsWith('.test.ts'));
  await esbuild.build({
    entryPoints: names.map((name) => path.join(here, 'unit', name)),
    outdir: folder,
    bundle: true,
    format: 'esm',
    platform: 'node',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    outExtension: { '.js': '.mjs' },
    nodePaths: [path.join(here, '../node_modules')],
    logLevel: 'error',
  });
  const files = names.map((name) => path.join(folder, name.replace('.ts', '.mjs')));
  let passed = 0;
  let failed = 0;
  for await (const event of run({ files })) {
    // A file is a test of its own around those it holds.
    if (event.data?.details?.type === 'suite' || files.includes(event.data?.name)) continue;
    if (event.type === 'test:pass') {
      passed++;
      report(`test unit: ${event.data.name} ... ok`);
    } else if (event.type === 'test:fail') {
      failed++;
      report(`test unit: ${event.data.name} ... FAILED\n${event.data.details.error?.cause?.stack ?? event.data.details.error}`);
    }
  }
  fs.rmSync(folder, { recursive: true, force: true });
  return { passed, failed };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { passed, failed } = await units(console.log);
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}
