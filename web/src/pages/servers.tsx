// Other people's MCP servers: added after the exact command was shown, held until their tools are reviewed.
import { useMemo, useState } from 'preact/hooks';
import { path, post, request } from '../lib/api';
import { useDeed, useResource } from '../lib/resource';
import { go, link, route } from '../lib/router';
import { canChange } from '../lib/session';
import { count } from '../lib/text';
import { words } from '../lib/words';
import type { DiffLine, Risk as RiskFacts, UpstreamFinding } from '../lib/types';
import { Button, Diff, Empty, Facts, Failed, Field, Fold, Icon, Loading, Note, Pre, Risk, Section, T, Tabs, useListKeys } from '../ui/common';
import { Page, Split } from '../ui/frame';

interface ServerRow {
  name: string;
  decision: string;
  state: 'never-listed' | 'ready' | 'review' | 'faulty';
  words: string;
  callable: number;
  held: number;
  listed: boolean;
  launch: string;
  fault: string | null;
}
interface Server extends ServerRow {
  settings: { name: string; value: string }[];
  findings: UpstreamFinding[];
  tools: { name: string; as: string | null; state: string; words: string; risk: RiskFacts | null }[];
  log: string[];
}

const TONE = { 'never-listed': '', ready: 'good', review: 'warn', faulty: 'error' } as const;
const WORD = { 'never-listed': 'never listed', ready: 'ready', review: 'review', faulty: 'faulty' } as const;

export default function ServersPage() {
  const { path: parts } = route.value;
  const servers = useResource<{ items: ServerRow[] }>('/servers', ['servers', 'settings']);
  const list = useListKeys();
  const at = parts[0];
  return (
    <Page
      title="Servers"
      isWide
      actions={
        canChange.value && (
          <a class="button small primary" href={link('servers', ['add'])} data-test="add-server">
            <Icon name="plus" /> Add
          </a>
        )
      }
    >
      <Split
        back={link('servers')}
        list={
          <div class="list-body" ref={list}>
            {servers.error && !servers.data && <Failed error={servers.error} retry={servers.reload} />}
            {servers.isLoading && <Loading what="the servers" />}
            {servers.data?.items.map((server) => (
              <a class="entry" href={link('servers', [server.name])} aria-current={server.name === at ? 'true' : undefined} data-row data-test="server" data-name={server.name}>
                <Icon name="servers" />
                <span class="name"><T text={server.name} /></span>
                <span class="side"><span class={`tag ${TONE[server.state] ?? ''}`}>{WORD[server.state] ?? server.state}</span></span>
                <span class="sub"><T text={server.fault ?? server.words} /></span>
              </a>
            ))}
            {servers.data && !servers.data.items.length && (
              <Empty title="No server yet">
                <p>An MCP server you add runs in a jail of its own. Its tools are held until you have reviewed them, and again when they change.</p>
                <p><a href={link('servers', ['add'])}>Add one</a> by its command, its URL, or from a client's configuration.</p>
              </Empty>
            )}
          </div>
        }
        detail={at === 'add' ? <Add /> : at && parts[1] === 'review' ? <Review key={at} name={at} /> : at ? <Detail key={at} name={at} /> : null}
      />
    </Page>
  );
}

function Detail({ name }: { name: string }) {
  const server = useResource<Server>(path(['servers', name]), ['servers', 'settings']);
  const logs = useResource<{ lines: string[]; fault: string | null }>(path(['servers', name, 'logs']), ['servers']);
  const [isSure, setSure] = useState(false);
  const block = useDeed(async () => server.set(await post<Server>(path(['servers', name, 'block']), { tool: null })));
  const restart = useDeed(async () => server.set(await post<Server>(path(['servers', name, 'restart']), {})));
  const drop = useDeed(async () => {
    await request('DELETE', path(['servers', name]), {});
    go(link('servers'));
  });
  if (server.isLoading) return <Loading what="the server" />;
  if (!server.data) return server.error ? <Failed error={server.error} retry={server.reload} /> : null;
  const facts = server.data;
  return (
    <article data-test="server-view">
      <div class="detail-head">
        <h2><T text={facts.name} /></h2>
        <span class={`tag ${TONE[facts.state] ?? ''}`}>{WORD[facts.state] ?? facts.state}</span>
        <div class="row">
          <a class={`button small ${facts.state === 'review' || facts.held ? 'primary' : ''}`} href={link('servers', [name, 'review'])} data-test="review">
            Review
          </a>
          {canChange.value && (
            <>
              <Button class="small" isBusy={restart.isBusy} onClick={() => void restart.run()}>
                Restart
              </Button>
              {facts.decision !== 'blocked' && (
                <Button class="small" kind="danger" isBusy={block.isBusy} onClick={() => void block.run()} test="block">
                  Block
                </Button>
              )}
            </>
          )}
        </div>
      </div>
      {[block, restart, drop].map((deed) => deed.error && <div class="section"><Failed error={deed.error} /></div>)}
      {facts.fault && (
        <div class="section">
          <Note kind="error"><T text={facts.fault} lines="many" /></Note>
        </div>
      )}
      <p class="section"><T text={facts.words} /></p>
      <Section title="How it is reached">
        <Facts rows={[...facts.settings.map((row) => [row.name, <T text={row.value} />] as [string, preact.ComponentChildren])]} />
      </Section>
      <Upstream findings={facts.findings} />
      <Section title={`Tools (${facts.tools.length})`}>
        <ul class="plain">
          {facts.tools.map((tool) => (
            <li class="row">
              <Risk risk={tool.risk} /> {tool.as ? <a href={link('tools', [tool.as])}><T text={tool.as} /></a> : <T text={tool.name} />} <span class={`tag ${tool.state}`}>{tool.state}</span> <span class="dim"><T text={tool.words} /></span>
            </li>
          ))}
        </ul>
      </Section>
      <Section title="What it wrote to standard error">
        {logs.data?.lines.length ? <Pre text={logs.data.lines.join('\n')} label="standard error" /> : <p class="dim">Nothing.</p>}
      </Section>
      {canChange.value && (
        <div class="row">
          {isSure ? (
            <Button kind="danger" class="small" isBusy={drop.isBusy} onClick={() => void drop.run()}>
              Remove <T text={name} /> from the settings
            </Button>
          ) : (
            <Button kind="quiet" class="small" onClick={() => setSure(true)}>
              Remove
            </Button>
          )}
        </div>
      )}
    </article>
  );
}

function Upstream({ findings }: { findings: UpstreamFinding[] }) {
  if (!findings.length) return null;
  return (
    <Section title="Findings">
      <ul class="findings" data-test="upstream-findings">
        {findings.map((finding) => (
          <li>
            <span class={`tag ${finding.severity}`}>{finding.severity}</span> <T text={finding.message} /> <span class="dim"><T text={finding.place} /></span>
            {finding.evidence && <Pre text={finding.evidence} label="evidence" />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface ReviewItem {
  key: string;
  name: string;
  change: 'new' | 'changed' | 'gone' | 'same';
  state: string;
  stateWords: string;
  risk: RiskFacts | null;
  fields: { field: string; class: string; before: string | null; after: string | null }[];
  findings: UpstreamFinding[];
}
interface ReviewFacts {
  server: string;
  digest: string;
  decision: string;
  settled: boolean;
  items: ReviewItem[];
  findings: UpstreamFinding[];
}

function Review({ name }: { name: string }) {
  const [isFresh, setFresh] = useState(false);
  const review = useResource<ReviewFacts>(path(['servers', name, 'review'], isFresh ? { fresh: 'true' } : {}), ['servers']);
  const [picked, setPicked] = useState<Set<string>>();
  const accept = useDeed(async (tools: string[] | null) => {
    await post(path(['servers', name, 'accept']), { digest: review.data!.digest, tools });
    review.reload();
  });
  const block = useDeed(async (tool: string) => {
    await post(path(['servers', name, 'block']), { tool });
    review.reload();
  });
  if (review.isLoading) return <Loading what={isFresh ? 'what the server offers; it is started for this' : 'the review'} />;
  if (!review.data) return review.error ? <Failed error={review.error} retry={review.reload} /> : null;
  const facts = review.data;
  const open = facts.items.filter((item) => item.change !== 'same' || item.state !== 'callable');
  const rest = facts.items.filter((item) => !open.includes(item));
  const offered = open.filter((item) => item.change !== 'gone').map((item) => item.name);
  // What the server's own words raise a finding about is accepted only by a person's own click.
  const chosen = picked ?? new Set(open.filter((item) => item.change !== 'gone' && !item.findings.length).map((item) => item.name));
  return (
    <article data-test="review-view">
      <div class="detail-head">
        <h2>Review <T text={name} /></h2>
        <div class="row">
          <a class="button small quiet" href={link('servers', [name])}>
            Server
          </a>
          {canChange.value && (
            <Button class="small" onClick={() => (isFresh ? review.reload() : setFresh(true))} test="list-again">
              Ask the server again
            </Button>
          )}
        </div>
      </div>
      <Upstream findings={facts.findings} />
      {!open.length && <Note kind="good">Nothing waits: what the server offers is what you accepted.</Note>}
      {open.map((item) => (
        <div class="card section" data-test="review-item" data-name={item.name}>
          <div class="row">
            {item.change !== 'gone' && (
              <input
                type="checkbox"
                aria-label={`accept ${item.name}`}
                checked={chosen.has(item.name)}
                onChange={(event) => {
                  const next = new Set(chosen);
                  if (event.currentTarget.checked) next.add(item.name);
                  else next.delete(item.name);
                  setPicked(next);
                }}
              />
            )}
            <Risk risk={item.risk} /> <strong><T text={item.name} /></strong> <span class={`tag ${item.change === 'new' ? 'new' : 'warn'}`}>{item.change}</span> <span class={`tag ${item.state}`}>{item.state}</span>
            <span class="grow" />
            {canChange.value && (
              <Button class="small" kind="quiet" isBusy={block.isBusy} onClick={() => void block.run(item.name)}>
                Block
              </Button>
            )}
          </div>
          <p class="dim"><T text={item.stateWords} /></p>
          <Fields fields={item.fields} isNew={item.change === 'new'} />
          <Upstream findings={item.findings} />
        </div>
      ))}
      {rest.length > 0 && (
        <Fold title={`${count(rest.length, 'tool')} unchanged and accepted`}>
          <ul class="plain">
            {rest.map((item) => (
              <li><Risk risk={item.risk} /> <T text={item.name} /></li>
            ))}
          </ul>
        </Fold>
      )}
      {[accept, block].map((deed) => deed.error && <Failed error={deed.error} />)}
      {canChange.value && open.length > 0 && (
        <div class="decide">
          <div class="row">
            <a class="button" href={link('servers', [name])}>
              Keep the old text
            </a>
            <Button kind="primary" disabled={!chosen.size} isBusy={accept.isBusy} onClick={() => void accept.run(chosen.size === offered.length ? null : [...chosen])} test="accept">
              Accept {chosen.size === offered.length && chosen.size > 1 ? 'all ' : ''}{count(chosen.size, 'tool')}
            </Button>
            <span class="dim">digest {facts.digest.slice(0, 12)}</span>
          </div>
        </div>
      )}
    </article>
  );
}

function Fields({ fields, isNew }: { fields: ReviewItem['fields']; isNew: boolean }) {
  if (!fields.length) return null;
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="fields">
      <table class="changes">
        <thead>
          <tr>
            <th>Field</th>
            {!isNew && <th>Accepted</th>}
            <th>Offered now</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr>
              <td>
                <code><T text={field.field} /></code>
                <p class="dim">{field.class}</p>
              </td>
              {!isNew && <td class="removed">{field.before === null ? <span class="dim">absent</span> : <pre><T text={field.before} lines="many" /></pre>}</td>}
              <td class="added">{field.after === null ? <span class="dim">absent</span> : <pre><T text={field.after} lines="many" /></pre>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Planned {
  name: string;
  launch: { argv: string[] | null; environment: { name: string; value: string }[]; url: string | null };
  toml: string;
  findings: UpstreamFinding[];
  diff: DiffLine[];
  taken: boolean;
  digest: string;
}
interface Trial {
  ok: boolean;
  tools: { name: string; description: string; risk: RiskFacts | null }[];
  log: string[];
  fault: string | null;
  findings: UpstreamFinding[];
}

function Add() {
  const [way, setWay] = useState('command');
  const [name, setName] = useState('');
  const [line, setLine] = useState('');
  const [environment, setEnvironment] = useState('');
  const [url, setUrl] = useState('');
  const [config, setConfig] = useState('');
  const [plan, setPlan] = useState<{ of: string; items: Planned[] }>();
  const [trial, setTrial] = useState<Trial>();
  const body = useMemo(() => {
    if (way === 'import') return { import: config };
    const pairs = environment.split('\n').map((row) => row.trim()).filter(Boolean).map((row) => [row.split('=')[0]!, row.slice(row.indexOf('=') + 1)]);
    return way === 'url' ? { name, url } : { name, command: words(line), environment: Object.fromEntries(pairs) as Record<string, string> };
  }, [way, name, line, environment, url, config]);
  const key = JSON.stringify(body);
  const preview = useDeed(async () => {
    setTrial(undefined);
    setPlan({ of: key, items: (await post<{ items: Planned[] }>('/servers/preview', body)).items });
  });
  const attempt = useDeed(async (digest: string) => setTrial(await post<Trial>('/servers/trial', { ...body, digest })));
  const add = useDeed(async (digest: string) => {
    const made = await post<{ name: string }>('/servers', { ...body, digest });
    go(link('servers', [made.name]));
  });
  const isCurrent = plan?.of === key;
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
        {way !== 'import' && <Field label="Name" hint="Its tools are called NAME__tool.">{(id) => <input id={id} class="mono" value={name} onInput={(event) => setName(event.currentTarget.value)} spellcheck={false} data-test="server-name" />}</Field>}
        {way === 'command' && (
          <>
            <Field label="Command" hint="Started without a shell, in a jail.">{(id) => <input id={id} class="mono" placeholder="npx -y @modelcontextprotocol/server-memory" value={line} onInput={(event) => setLine(event.currentTarget.value)} spellcheck={false} data-test="server-command" />}</Field>
            <Field label="Environment" hint="NAME=value, one on each line; ${SECRET} takes a secret by its name.">{(id) => <textarea id={id} class="mono" rows={2} value={environment} onInput={(event) => setEnvironment(event.currentTarget.value)} spellcheck={false} />}</Field>
          </>
        )}
        {way === 'url' && <Field label="URL">{(id) => <input id={id} class="mono" type="url" placeholder="https://mcp.example.com/mcp" value={url} onInput={(event) => setUrl(event.currentTarget.value)} />}</Field>}
        {way === 'import' && <Field label="Configuration" hint="The JSON of Claude, Cursor, VS Code or another client.">{(id) => <textarea id={id} class="mono" rows={8} value={config} onInput={(event) => setConfig(event.currentTarget.value)} spellcheck={false} />}</Field>}
        <div class="row">
          <Button kind={isCurrent ? undefined : 'primary'} isBusy={preview.isBusy} onClick={() => void preview.run()} test="preview-server">
            Show exactly what would start
          </Button>
        </div>
        {preview.error && <Failed error={preview.error} />}
        {isCurrent &&
          plan.items.map((item) => (
            <div class="card stack" data-test="planned">
              <h2><T text={item.name} /></h2>
              {item.launch.argv && (
                <ol class="plain mono">
                  {item.launch.argv.map((part, index) => (
                    <li><span class="dim">{index}</span> <T text={part} /></li>
                  ))}
                </ol>
              )}
              {item.launch.url && <p class="mono"><T text={item.launch.url} /></p>}
              {item.launch.environment.length > 0 && <Facts rows={item.launch.environment.map((row) => [row.name, <code><T text={row.value} /></code>])} />}
              {item.taken && <Note kind="error">The name is taken.</Note>}
              <Upstream findings={item.findings} />
              <Fold title="The change of ringfence.toml">
                <Diff lines={item.diff} label="change of the settings" />
              </Fold>
              <div class="row">
                <Button isBusy={attempt.isBusy} disabled={item.taken} onClick={() => void attempt.run(item.digest)} test="trial">
                  Try it: start, list, stop
                </Button>
                <Button kind="primary" isBusy={add.isBusy} disabled={item.taken} onClick={() => void add.run(item.digest)} test="confirm-add">
                  Add, with its tools held
                </Button>
              </div>
            </div>
          ))}
        {[attempt, add].map((deed) => deed.error && <Failed error={deed.error} />)}
        {trial && (
          <Note kind={trial.ok ? 'good' : 'error'} test="trial-result">
            <p>
              <strong>{trial.ok ? `It offers ${count(trial.tools.length, 'tool')}. Nothing live was touched.` : <T text={trial.fault} />}</strong>
            </p>
            <ul class="plain">
              {trial.tools.map((tool) => (
                <li><Risk risk={tool.risk} /> <strong><T text={tool.name} /></strong> <span class="dim"><T text={tool.description} /></span></li>
              ))}
            </ul>
            {trial.log.length > 0 && <Fold title="Standard error"><Pre text={trial.log.join('\n')} label="standard error" /></Fold>}
          </Note>
        )}
      </div>
    </article>
  );
}
