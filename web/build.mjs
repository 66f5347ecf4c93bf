// Builds the Studio: src/ to a folder of files with hashed names, each also compressed, and
// table.rs, by which crates/studio embeds them in the program. The same sources give the same bytes.
// `cargo xtask studio` calls it.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';
import * as esbuild from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.resolve(process.argv[2] ?? path.join(here, '../target/studio'));

/** Bounds of what a browser loads, gzipped. */
const ALL_BYTES_MAX = 400 * 1024;
const FIRST_LOAD_BYTES_MAX = 60 * 1024;

const MIME = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
};

/** The names that exist for code, from the lists that tests of the sandbox keep true. */
function globals() {
  const names = (file) => {
    const text = fs.readFileSync(path.join(here, '../cases/surface', file), 'utf8');
    const found = [...text.matchAll(/^global\.([A-Za-z]\w*(?:\.[A-Za-z]\w*){0,2})  /gm)].map((match) => match[1]);
    return found.filter((name) => !/\.(name|length|prototype|constructor)$/.test(name));
  };
  const [plain, powers, script] = ['tool.txt', 'tool-powers.txt', 'script.txt'].map(names);
  return { tool: plain, powers: powers.filter((name) => !plain.includes(name)), script: ['callTool', 'codecallContext', ...script] };
}

const surface = {
  name: 'surface',
  setup(build) {
    build.onResolve({ filter: /^surface$/ }, () => ({ path: 'surface', namespace: 'surface' }));
    build.onLoad({ filter: /.*/, namespace: 'surface' }, () => ({ contents: JSON.stringify(globals()), loader: 'json' }));
  },
};

const built = await esbuild.build({
  plugins: [surface],
  absWorkingDir: here,
  entryPoints: ['src/main.tsx'],
  bundle: true,
  splitting: true,
  format: 'esm',
  target: ['es2022', 'chrome123', 'firefox121', 'safari17.5'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  minify: true,
  legalComments: 'none',
  charset: 'utf8',
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  outdir: 'out',
  write: false,
  metafile: true,
  logLevel: 'warning',
});

/** What a page loads before anything is asked for: the entry and all it imports at once. */
function firstLoad(metafile) {
  const outputs = metafile.outputs;
  const entry = Object.keys(outputs).find((name) => outputs[name].entryPoint === 'src/main.tsx');
  const wanted = new Set([entry, outputs[entry].cssBundle]);
  for (const name of wanted) {
    for (const { path: other, kind } of outputs[name].imports) if (kind === 'import-statement') wanted.add(other);
  }
  return { entry, css: outputs[entry].cssBundle, all: [...wanted].map((name) => path.basename(name)) };
}

const first = firstLoad(built.metafile);
const entry = path.basename(first.entry);
const css = path.basename(first.css);
const files = new Map();
for (const file of built.outputFiles) files.set(`assets/${path.basename(file.path)}`, Buffer.from(file.contents));
const sprite = fs.readFileSync(path.join(here, 'src/sprite.svg'), 'utf8').trim();
const preload = first.all
  .filter((name) => name.endsWith('.js') && name !== entry)
  .sort()
  .map((name) => `<link rel="modulepreload" href="/assets/${name}">\n`)
  .join('');
const html = fs
  .readFileSync(path.join(here, 'src/index.html'), 'utf8')
  .replace('<!-- head -->', `<link rel="stylesheet" href="/assets/${css}">\n${preload}<script type="module" src="/assets/${entry}"></script>`)
  .replace('<!-- sprite -->', () => sprite);
files.set('index.html', Buffer.from(html));
for (const icon of ['favicon.svg', 'favicon-waiting.svg']) files.set(icon, fs.readFileSync(path.join(here, 'src', icon)));

fs.rmSync(target, { recursive: true, force: true });
fs.mkdirSync(path.join(target, 'assets'), { recursive: true });
const rows = [];
let all = 0;
let atFirst = 0;
for (const [name, plain] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
  const gzip = zlib.gzipSync(plain, { level: 9 });
  const brotli = zlib.brotliCompressSync(plain, {
    params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 11, [zlib.constants.BROTLI_PARAM_SIZE_HINT]: plain.length },
  });
  fs.writeFileSync(path.join(target, name), plain);
  fs.writeFileSync(path.join(target, `${name}.gz`), gzip);
  fs.writeFileSync(path.join(target, `${name}.br`), brotli);
  all += gzip.length;
  if (first.all.includes(path.basename(name)) || name === 'index.html') atFirst += gzip.length;
  const digest = createHash('sha256').update(plain).digest('hex');
  const row = [`path: "/${name}"`, `mime: "${MIME[path.extname(name)]}"`, `immutable: ${name.startsWith('assets/')}`, `etag: "${digest}"`];
  row.push(`plain: include_bytes!("${name}")`, `gzip: include_bytes!("${name}.gz")`, `brotli: include_bytes!("${name}.br")`);
  rows.push(`    Asset {\n${row.map((field) => `        ${field},\n`).join('')}    },\n`);
}
// Included by crates/studio; sorted by path.
fs.writeFileSync(path.join(target, 'table.rs'), `pub(crate) static ASSETS: &[Asset] = &[\n${rows.join('')}];\n`);
const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;
console.log(`   ${files.size} files, ${kilobytes(all)} gzipped, of them ${kilobytes(atFirst)} for the first load`);
if (all > ALL_BYTES_MAX || atFirst > FIRST_LOAD_BYTES_MAX) {
  console.error(`the Studio is too large: at most ${kilobytes(ALL_BYTES_MAX)} in all and ${kilobytes(FIRST_LOAD_BYTES_MAX)} for the first load`);
  process.exit(1);
}
