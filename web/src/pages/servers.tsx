// Other people's MCP servers: added after the exact command was shown, held until their tools are reviewed.
import { useMemo, useState } from 'preact/hooks';
import { get, path, post, request } from '../lib/api';
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
  secrets: string[];
  findings: UpstreamFinding[];
  tools: { name: string; as: string | null; state: string; words: string; risk?: RiskFacts | null }[];
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
  const [log, setLog] = useState<{ lines: string[]; fault: string | null }>();
  const read = useDeed(async () => setLog(await get(path(['servers', name, 'logs']))));
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
              <Button class="small" isBusy={restart.isBusy} onClick={() => void restart.run()} test="restart">
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
        <Facts rows={[['launch', <code><T text={facts.launch} /></code>], ['decision', facts.decision], ['secrets', facts.secrets.length ? facts.secrets.map((secret) => <><a href={link('secrets', [], { name: secret })}><T text={secret} /></a> </>) : <span class="dim">none</span>]]} />
      </Section>
      <Upstream findings={facts.findings} />
      <Section title={`Tools (${facts.tools.length})`}>
        <ul class="plain">
          {facts.tools.map((tool) => (
            <li class="row">
              <Risk risk={tool.risk ?? null} /> {tool.as ? <a href={link('tools', [tool.as])}><T text={tool.as} /></a> : <T text={tool.name} />} <span class={`tag ${tool.state}`}>{tool.state}</span> <span class="dim"><T text={tool.words} /></span>
            </li>
          ))}
        </ul>
      </Section>
      <Section title="What it wrote to standard error">
        {read.error && <Failed error={read.error} />}
        {log?.fault && <p class="bad"><T text={log.fault} /></p>}
        {log ? log.lines.length ? <Pre text={log.lines.join('\n')} label="standard error" /> : <p class="dim">Nothing.</p> : canChange.value ? (
          <Button class="small" isBusy={read.isBusy} onClick={() => void read.run()} test="read-log">
            Start it and read
          </Button>
        ) : <p class="dim">The owner can read it.</p>}
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
  instructions?: string | null;
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
  if (!review.data) {
    if (!review.error) return null;
    return (
      <article class="stack" data-test="review-view">
        <Failed error={review.error} {...(isFresh ? { retry: review.reload } : {})} />
        {!isFresh && canChange.value && (
          <div class="row">
            <Button kind="primary" onClick={() => setFresh(true)} test="list-again">
              Start it and list its tools
            </Button>
          </div>
        )}
      </article>
    );
  }
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
      {facts.instructions && <Fold title="Its instructions for the model"><Pre text={facts.instructions} label="instructions" /></Fold>}
      {!open.length && <div class="section"><Note kind="good">Nothing waits: what the server offers is what you accepted.</Note></div>}
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
              {chosen.size ? `Accept ${chosen.size === offered.length && chosen.size > 1 ? 'all ' : ''}${count(chosen.size, 'tool')}` : 'Tick what you accept'}
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
  argv: string[];
  environment: { name: string; value: string }[];
  url: string | null;
  diff: DiffLine[];
  findings: UpstreamFinding[];
  refused: string | null;
  digest: string;
}

/** One entry of a client's configuration, to fill the form from. */
interface Entry {
  name: string;
  command: string[];
  environment: Record<string, string>;
  url: string | undefined;
}

function entriesOf(config: string): Entry[] {
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const record = (value: unknown) => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {});
  try {
    const whole = record(JSON.parse(config));
    const servers = record(whole.mcpServers ?? whole.servers ?? record(whole.mcp).servers);
    return Object.entries(servers).map(([name, raw]) => {
      const entry = record(raw);
      const rest = Array.isArray(entry.args) ? entry.args.map(text) : [];
      const environment = Object.fromEntries(Object.entries(record(entry.env)).map(([key, value]) => [key, text(value)]));
      return { name, command: entry.command ? [text(entry.command), ...rest] : [], environment, url: entry.url ? text(entry.url) : undefined };
    });
  } catch {
    return [];
  }
}

const quote = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function Add() {
  const [way, setWay] = useState('command');
  const [name, setName] = useState('');
  const [line, setLine] = useState('');
  const [environment, setEnvironment] = useState('');
  const [url, setUrl] = useState('');
  const [config, setConfig] = useState('');
  const [network, setNetwork] = useState('');
  const [reads, setReads] = useState('');
  const [plan, setPlan] = useState<{ of: string; value: Planned }>();
  const body = useMemo(() => {
    const pairs = environment.split('\n').map((row) => row.trim()).filter(Boolean).map((row) => [row.split('=')[0]!, row.slice(row.indexOf('=') + 1)]);
    if (way === 'url') return { name, url };
    return { name, command: words(line), environment: Object.fromEntries(pairs) as Record<string, string>, read: words(reads), ...(network ? { network } : {}) };
  }, [way, name, line, environment, url, network, reads]);
  const key = JSON.stringify(body);
  const preview = useDeed(async () => setPlan({ of: key, value: await post<Planned>('/servers/preview', body) }));
  const add = useDeed(async (digest: string) => {
    const made = await post<{ name: string }>('/servers', { ...body, digest });
    go(link('servers', [made.name, 'review']));
  });
  const take = (entry: Entry) => {
    setName(entry.name.toLowerCase().replace(/[^a-z0-9-]+/g, '-'));
    setLine(entry.command.map(quote).join(' '));
    setEnvironment(Object.entries(entry.environment).map(([one, value]) => `${one}=${value}`).join('\n'));
    setUrl(entry.url ?? '');
    setWay(entry.url ? 'url' : 'command');
  };
  const planned = plan?.of === key ? plan.value : undefined;
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
        {way === 'import' ? (
          <>
            <Field label="Configuration" hint="The JSON of Claude, Cursor, VS Code or another client. It stays in this page; pick a server to fill the form.">
              {(id) => <textarea id={id} class="mono" rows={8} value={config} onInput={(event) => setConfig(event.currentTarget.value)} spellcheck={false} />}
            </Field>
            <div class="row">
              {entriesOf(config).map((entry) => (
                <Button class="small" onClick={() => take(entry)}>
                  Use <T text={entry.name} />
                </Button>
              ))}
            </div>
          </>
        ) : (
          <Field label="Name" hint="Its tools are called NAME__tool.">{(id) => <input id={id} class="mono" value={name} onInput={(event) => setName(event.currentTarget.value)} spellcheck={false} data-test="server-name" />}</Field>
        )}
        {way === 'command' && (
          <>
            <Field label="Command" hint="Started without a shell, in a jail.">{(id) => <input id={id} class="mono" placeholder="npx -y @modelcontextprotocol/server-memory" value={line} onInput={(event) => setLine(event.currentTarget.value)} spellcheck={false} data-test="server-command" />}</Field>
            <Field label="Environment" hint="NAME=value, one on each line; ${SECRET} takes a secret by its name.">{(id) => <textarea id={id} class="mono" rows={2} value={environment} onInput={(event) => setEnvironment(event.currentTarget.value)} spellcheck={false} />}</Field>
            <div class="form two">
              <Field label="Folders it may read" hint="Besides the system's files.">{(id) => <input id={id} class="mono" value={reads} onInput={(event) => setReads(event.currentTarget.value)} spellcheck={false} data-test="server-read" />}</Field>
              <Field label="Network">
                {(id) => (
                  <select id={id} value={network} onChange={(event) => setNetwork(event.currentTarget.value)}>
                    <option value="">as the server says</option>
                    <option value="none">none</option>
                    <option value="open">open</option>
                  </select>
                )}
              </Field>
            </div>
          </>
        )}
        {way === 'url' && <Field label="URL">{(id) => <input id={id} class="mono" type="url" placeholder="https://mcp.example.com/mcp" value={url} onInput={(event) => setUrl(event.currentTarget.value)} />}</Field>}
        {way !== 'import' && (
          <div class="row">
            <Button kind={planned ? undefined : 'primary'} isBusy={preview.isBusy} onClick={() => void preview.run()} test="preview-server">
              Show exactly what would start
            </Button>
          </div>
        )}
        {preview.error && <Failed error={preview.error} />}
        {planned && (
          <div class="card stack" data-test="planned">
            <h2><T text={planned.name} /></h2>
            {planned.argv.length > 0 && (
              <ol class="plain mono">
                {planned.argv.map((part, index) => (
                  <li><span class="dim">{index}</span> <T text={part} /></li>
                ))}
              </ol>
            )}
            {planned.url && <p class="mono"><T text={planned.url} /></p>}
            {planned.environment.length > 0 && <Facts rows={planned.environment.map((row) => [row.name, <code><T text={row.value} /></code>])} />}
            {planned.refused && <Note kind="error"><T text={planned.refused} /></Note>}
            <Upstream findings={planned.findings} />
            <Fold title="The change of ringfence.toml">
              <Diff lines={planned.diff} label="change of the settings" />
            </Fold>
            <p class="dim">Adding starts nothing. The review starts it, lists its tools and stops; nothing of it is accepted until you say so.</p>
            <div class="row">
              <Button kind="primary" isBusy={add.isBusy} disabled={planned.refused !== null} onClick={() => void add.run(planned.digest)} test="confirm-add">
                Add, with everything held
              </Button>
            </div>
          </div>
        )}
        {add.error && <Failed error={add.error} />}
      </div>
    </article>
  );
}
