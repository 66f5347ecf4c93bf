// Other people's MCP servers: added after the exact command was shown, held until their tools are reviewed.
import { useState } from 'preact/hooks';
import { get, path, post, request } from '../lib/api';
import { useDeed, useResource } from '../lib/resource';
import { go, link, route } from '../lib/router';
import { canChange } from '../lib/session';
import { count } from '../lib/text';
import type { Risk as RiskFacts, UpstreamFinding } from '../lib/types';
import { Button, Empty, Facts, Failed, Fold, Icon, Loading, Note, Pre, Risk, Section, T, Time, useListKeys } from '../ui/common';
import { Page, Split } from '../ui/frame';
import { Add } from './servers-add';
import { Fields, Upstream, type ReviewFacts } from './servers-review';

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

interface ProcessLog {
  running: boolean;
  changedAtMs: number;
  lines: string[];
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
  const [log, setLog] = useState<ProcessLog[]>();
  const read = useDeed(async () => setLog((await get<{ items: ProcessLog[] }>(path(['servers', name, 'logs']))).items));
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
        {log?.map((one) => (
          <>
            <p class="dim">
              {one.running ? 'Running' : 'Ended'}, last wrote <Time at={one.changedAtMs} />
            </p>
            {one.lines.length ? <Pre text={one.lines.join('\n')} label="standard error" /> : <p class="dim">Nothing.</p>}
          </>
        ))}
        {log && !log.length && <p class="dim">No process of it has written anything yet. It starts at its first call, or when you list it in the review.</p>}
        {canChange.value ? (
          <Button class="small" isBusy={read.isBusy} onClick={() => void read.run()} test="read-log">
            {log ? 'Read again' : 'Read'}
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
