// Adding a server: what would start is shown exactly, it can be tried out, and only what was shown is taken. The
// server reads a client's configuration; this page holds no rule about it.
import { useMemo, useRef, useState } from 'preact/hooks';
import { post, type Refused } from '../lib/api';
import { useDeed } from '../lib/resource';
import { go, link } from '../lib/router';
import { count } from '../lib/text';
import { words } from '../lib/words';
import type { DiffLine, UpstreamFinding } from '../lib/types';
import { Button, Diff, Facts, Failed, Field, Fold, Note, Pre, Risk, T, Tabs } from '../ui/common';
import { Fields, Upstream, type ReviewFacts } from './servers-review';

interface Named {
  name: string;
  value: string;
}
interface Planned {
  name: string;
  argv: string[];
  environment: Named[];
  url: string | null;
  diff: DiffLine[];
  findings: UpstreamFinding[];
  refused: string | null;
  digest: string;
}
interface Trial {
  review: ReviewFacts;
  protocol: string;
  walls: { name: string; missing: string | null }[];
  log: string[];
}
interface Imported {
  from: string;
  name: string;
  known: boolean;
  argv: string[];
  url: string | null;
  environment: Named[];
  read: string[];
  network: string;
  moved: Named[];
  dropped: string[];
  findings: UpstreamFinding[];
}
interface ImportPlan {
  servers: Imported[];
  left: { name: string; why: string }[];
  diff: DiffLine[];
  digest: string;
}

export function Add() {
  const [way, setWay] = useState('command');
  return (
    <article data-test="add-view">
      <div class="detail-head">
        <h2>Add a server</h2>
      </div>
      <div class="form">
        <Tabs
          label="How it is reached"
          at={way}
          onPick={setWay}
          tabs={[
            { id: 'command', label: 'Command' },
            { id: 'url', label: 'URL' },
            { id: 'import', label: "From a client's configuration" },
          ]}
        />
        {way === 'import' ? <Import /> : <One way={way} />}
      </div>
    </article>
  );
}

/** What would be started or reached, part by part, so that nothing hides in a long line. */
function Launch({ argv, url, environment }: { argv: string[]; url: string | null; environment: Named[] }) {
  return (
    <>
      {argv.length > 0 && (
        <ol class="plain mono">
          {argv.map((part, index) => (
            <li><span class="dim">{index}</span> <T text={part} /></li>
          ))}
        </ol>
      )}
      {url && <p class="mono"><T text={url} /></p>}
      {environment.length > 0 ? <Facts rows={environment.map((row) => [row.name, <code><T text={row.value} /></code>])} /> : !url && <p class="dim">No variable of this machine is passed on but PATH, the language and the time zone.</p>}
    </>
  );
}

function One({ way }: { way: string }) {
  const [name, setName] = useState('');
  const [line, setLine] = useState('');
  const [environment, setEnvironment] = useState('');
  const [url, setUrl] = useState('');
  const [network, setNetwork] = useState('');
  const [reads, setReads] = useState('');
  const [plan, setPlan] = useState<{ of: string; value: Planned }>();
  const [trial, setTrial] = useState<{ of: string; value: Trial }>();
  const body = useMemo(() => {
    const pairs = environment.split('\n').map((row) => row.trim()).filter(Boolean).map((row) => [row.split('=')[0]!, row.slice(row.indexOf('=') + 1)]);
    if (way === 'url') return { name, url };
    return { name, command: words(line), environment: Object.fromEntries(pairs) as Record<string, string>, read: words(reads), ...(network ? { network } : {}) };
  }, [way, name, line, environment, url, network, reads]);
  const key = JSON.stringify(body);
  const preview = useDeed(async () => setPlan({ of: key, value: await post<Planned>('/servers/preview', body) }));
  const attempt = useDeed(async (digest: string) => setTrial({ of: key, value: await post<Trial>('/servers/trial', { ...body, digest }) }));
  const add = useDeed(async (digest: string) => {
    const made = await post<{ name: string }>('/servers', { ...body, digest });
    go(link('servers', [made.name, 'review']));
  });
  const planned = plan?.of === key ? plan.value : undefined;
  const tried = trial?.of === key ? trial.value : undefined;
  return (
    <>
      <Field label="Name" hint="Its tools are called NAME__tool.">{(id) => <input id={id} class="mono" value={name} onInput={(event) => setName(event.currentTarget.value)} spellcheck={false} data-test="server-name" />}</Field>
      {way === 'command' && (
        <>
          <Field label="Command" hint="Started without a shell, in a jail.">{(id) => <input id={id} class="mono" placeholder="npx -y @modelcontextprotocol/server-memory" value={line} onInput={(event) => setLine(event.currentTarget.value)} spellcheck={false} data-test="server-command" />}</Field>
          <Field label="Environment" hint="NAME=value, one on each line; ${SECRET} takes a secret by its name.">{(id) => <textarea id={id} class="mono" rows={2} value={environment} onInput={(event) => setEnvironment(event.currentTarget.value)} spellcheck={false} data-test="server-environment" />}</Field>
          <div class="form two">
            <Field label="Folders it may read" hint="Besides the system's files.">{(id) => <input id={id} class="mono" value={reads} onInput={(event) => setReads(event.currentTarget.value)} spellcheck={false} data-test="server-read" />}</Field>
            <Field label="Network">
              {(id) => (
                <select id={id} value={network} onChange={(event) => setNetwork(event.currentTarget.value)}>
                  <option value="">none, unless the settings say otherwise</option>
                  <option value="none">none</option>
                  <option value="open">open</option>
                </select>
              )}
            </Field>
          </div>
        </>
      )}
      {way === 'url' && <Field label="URL">{(id) => <input id={id} class="mono" type="url" placeholder="https://mcp.example.com/mcp" value={url} onInput={(event) => setUrl(event.currentTarget.value)} data-test="server-url" />}</Field>}
      <div class="row">
        <Button kind={planned ? undefined : 'primary'} isBusy={preview.isBusy} onClick={() => void preview.run()} test="preview-server">
          Show exactly what would start
        </Button>
      </div>
      {preview.error && <Failed error={preview.error} />}
      {planned && (
        <div class="card stack" data-test="planned">
          <h2><T text={planned.name} /></h2>
          <Launch argv={planned.argv} url={planned.url} environment={planned.environment} />
          {planned.refused && <Note kind="error"><T text={planned.refused} /></Note>}
          <Upstream findings={planned.findings} />
          <Fold title="The change of ringfence.toml">
            <Diff lines={planned.diff} label="change of the settings" />
          </Fold>
          <p class="dim">Trying it out starts it in its jail, lists its tools and ends it; nothing is kept. Adding starts nothing, and nothing of it is accepted until you say so.</p>
          <div class="row">
            <Button isBusy={attempt.isBusy} disabled={planned.refused !== null} onClick={() => void attempt.run(planned.digest)} test="try-server">
              Try it out
            </Button>
            <Button kind="primary" isBusy={add.isBusy} disabled={planned.refused !== null} onClick={() => void add.run(planned.digest)} test="confirm-add">
              Add, with everything held
            </Button>
          </div>
        </div>
      )}
      {[attempt, add].map((deed) => deed.error && <FailedStart error={deed.error} />)}
      {tried && <Tried trial={tried} />}
    </>
  );
}

/** A start that failed, with what the program wrote before it ended. */
function FailedStart({ error }: { error: Refused }) {
  const log = (error.body as { error?: { details?: { log?: string[] } } } | undefined)?.error?.details?.log ?? [];
  return (
    <div class="stack" data-test="start-failed">
      <Failed error={error} />
      {log.length > 0 && <Pre text={log.join('\n')} label="what it wrote to standard error" />}
    </div>
  );
}

function Tried({ trial }: { trial: Trial }) {
  const missing = trial.walls.filter((wall) => wall.missing !== null);
  return (
    <div class="card stack" data-test="tried">
      <h2>It answered, and was ended</h2>
      <p class="dim">
        It offers {count(trial.review.items.length, 'item')} over MCP <T text={trial.protocol} />. This is what would be pinned if you accepted it as it is now.
      </p>
      {missing.map((wall) => <Note kind="warn"><p>The layer <T text={wall.name} /> is missing: <T text={wall.missing} /></p></Note>)}
      <Upstream findings={trial.review.findings} />
      {trial.review.instructions && <Fold title="Its instructions for the model"><Pre text={trial.review.instructions} label="instructions" /></Fold>}
      {trial.review.items.map((item) => (
        <Fold title={<><Risk risk={item.risk} /> <T text={item.name} /> {item.findings.length > 0 && <span class="tag warn">{count(item.findings.length, 'finding')}</span>}</>}>
          <Upstream findings={item.findings} />
          <Fields fields={item.fields} isNew />
        </Fold>
      ))}
      {trial.log.length > 0 && <Fold title="What it wrote to standard error"><Pre text={trial.log.join('\n')} label="standard error" /></Fold>}
    </div>
  );
}

function Import() {
  const [text, setText] = useState('');
  const [plan, setPlan] = useState<{ of: string; value: ImportPlan }>();
  const [left, setLeft] = useState<Set<string>>(new Set());
  const file = useRef<HTMLInputElement>(null);
  const read = useDeed(async (from: string, without: Set<string>) => {
    const all = await post<ImportPlan>('/servers/import/preview', { text: from });
    const wanted = all.servers.filter((one) => !without.has(one.from)).map((one) => one.from);
    const value = without.size ? await post<ImportPlan>('/servers/import/preview', { text: from, servers: wanted }) : all;
    setPlan({ of: from, value });
  });
  const take = useDeed(async (value: ImportPlan) => {
    const servers = value.servers.filter((one) => !left.has(one.from)).map((one) => one.from);
    await post<{ names: string[] }>('/servers/import', { text, servers, digest: value.digest });
    go(link('servers'));
  });
  const planned = plan?.of === text ? plan.value : undefined;
  const chosen = planned?.servers.filter((one) => !left.has(one.from) && !one.known) ?? [];
  const toggle = (from: string, isIn: boolean) => {
    const next = new Set(left);
    if (isIn) next.delete(from);
    else next.add(from);
    setLeft(next);
    void read.run(text, next);
  };
  return (
    <>
      <Field label="Configuration" hint="The JSON of Claude, Cursor, VS Code or another client. Your client's own file stays as it is; `ringfence wrap` changes it as well.">
        {(id) => <textarea id={id} class="mono" rows={8} value={text} onInput={(event) => setText(event.currentTarget.value)} spellcheck={false} data-test="import-text" />}
      </Field>
      <div class="row">
        <Button kind={planned ? undefined : 'primary'} disabled={!text.trim()} isBusy={read.isBusy} onClick={() => void read.run(text, left)} test="preview-import">
          Show what would be imported
        </Button>
        <Button onClick={() => file.current?.click()}>Choose a file</Button>
        <input
          ref={file}
          type="file"
          accept=".json,application/json"
          class="hide"
          aria-label="file with a client's configuration"
          tabIndex={-1}
          data-test="import-file"
          onChange={async (event) => {
            const [one] = event.currentTarget.files ?? [];
            if (!one) return;
            const content = await one.text();
            setText(content);
            void read.run(content, left);
          }}
        />
      </div>
      {read.error && <Failed error={read.error} />}
      {planned && (
        <div class="stack" data-test="import-plan">
          {planned.servers.map((one) => (
            <div class="card stack" data-test="import-item" data-name={one.name}>
              <label class="row">
                <input type="checkbox" checked={!left.has(one.from)} disabled={one.known} onChange={(event) => toggle(one.from, event.currentTarget.checked)} />
                <strong><T text={one.from} /></strong> {one.name !== one.from && <span class="dim">becomes <T text={one.name} /></span>} {one.known && <span class="tag">there already</span>}
              </label>
              <Launch argv={one.argv} url={one.url} environment={one.environment} />
              {!one.url && <p class="dim">Network: {one.network}. {one.read.length > 0 && <>It may read <T text={one.read.join(', ')} />.</>}</p>}
              {one.moved.map((row) => (
                <p><T text={row.name} /> moves to the file of secrets as <code><T text={row.value} /></code>.</p>
              ))}
              {one.dropped.length > 0 && <p class="dim">Left out: <T text={one.dropped.join(', ')} /></p>}
              <Upstream findings={one.findings} />
            </div>
          ))}
          {planned.left.map((one) => (
            <p data-test="import-left"><strong><T text={one.name} /></strong> stays with its client: <T text={one.why} /></p>
          ))}
          {chosen.length > 0 && (
            <Fold title="The change of ringfence.toml">
              <Diff lines={planned.diff} label="change of the settings" />
            </Fold>
          )}
          {take.error && <Failed error={take.error} />}
          <div class="row">
            <Button kind="primary" disabled={!chosen.length} isBusy={take.isBusy || read.isBusy} onClick={() => void take.run(planned)} test="confirm-import">
              {chosen.length ? `Import ${count(chosen.length, 'server')}, with everything held` : 'Nothing to import'}
            </Button>
          </div>
        </div>
      )}
    </>
  );
}
