// What happened. Filters are the address; an empty answer names the filter that caused it; the chain is verified
// from here.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get, path, post, Refused } from '../lib/api';
import { clock, duration, micros } from '../lib/format';
import { connection, listen } from '../lib/live';
import { useDeed, useResource } from '../lib/resource';
import { go, link, replace, route, withQuery } from '../lib/router';
import { Tail } from '../lib/tail';
import { count, visible } from '../lib/text';
import { keepTestValues } from '../lib/test-values';
import type { AuditRow, CallRow, Gate, Tool } from '../lib/types';
import { beyondGates, Button, Copy, Empty, Facts, Failed, Fold, Gates, Icon, Loading, Micros, Note, Pre, Risk, Section, T, Time, useListKeys } from '../ui/common';
import { Page, Split } from '../ui/frame';
import { Rows } from '../ui/rows';

const FILTERS = ['tool', 'caller', 'status', 'origin', 'kind', 'since', 'until', 'reason', 'differs'] as const;
type Filter = Partial<Record<(typeof FILTERS)[number], string>>;
/** Rows that are asked for at a time while one scrolls. */
const OLDER_ROWS = 500;

interface Log {
  items: AuditRow[];
  next: string | null;
  empty: string | null;
}

export default function AuditPage() {
  const { path: parts, query } = route.value;
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? undefined]).filter(([, value]) => value)) as Filter;
  const isVerifying = query.get('verify') === '1';
  const log = useLog(filter);
  const list = useListKeys();
  const at = parts[0];
  const { tail } = log;
  // A filter that no index knows finds nothing in some pages: the search goes on by itself.
  const isSearching = !tail.count && log.next !== null && !log.moreError;
  useEffect(() => {
    if (isSearching && !log.isMore) log.more();
  });
  return (
    <Page
      title="Audit"
      isWide
      actions={
        <a class="button small" href={link('audit', [], { ...filter, verify: 1 })} data-test="verify">
          Verify
        </a>
      }
    >
      <Split
        back={link('audit', [], filter)}
        list={
          <>
            <Filters filter={filter} />
            <div class="list-body" ref={list} data-test="audit-list">
              {log.error && <Failed error={log.error} retry={log.reload} />}
              {(log.isLoading || isSearching) && <Loading what="the log" />}
              {tail.count > 0 && <Rows key={log.of} label="Entries" count={tail.count} item={(index) => tail.at(index)} keyOf={keyOf} version={log.version} current={at} onTop={tail.onTop} more={log.next && !log.moreError ? log.more : undefined} row={(row) => <Row row={row} isAt={row.id === at} filter={filter} />} />}
              {!log.isLoading && !isSearching && !log.error && !tail.count && (
                <Empty title="Nothing here">
                  {log.empty && Object.keys(filter).length ? <p><T text={log.empty} /></p> : Object.keys(filter).length ? <p>No entry fits {Object.entries(filter).map(([name, value]) => `${name} “${value}”`).join(', ')}.</p> : <p>Every attempt to call a tool is recorded here before anything else happens, refused ones included. <a href={link('inspector')}>Call a tool</a> to see the first.</p>}
                  {Object.keys(filter).length > 0 && <p><a href={link('audit')}>Remove all filters</a></p>}
                </Empty>
              )}
              {log.moreError && <Failed error={log.moreError} />}
              {log.next && (
                <Button kind="quiet" isBusy={log.isMore} onClick={log.more} test="more">
                  Show older entries
                </Button>
              )}
            </div>
          </>
        }
        detail={isVerifying ? <Verify filter={filter} /> : at ? <Detail key={at} id={at} /> : null}
      />
    </Page>
  );
}

const keyOf = (row: AuditRow) => row.id;

/** The filtered log, with what happens meanwhile on top and older entries as one comes to them. */
function useLog(filter: Filter) {
  const asked = { ...filter, kind: filter.kind ?? 'call' };
  const query = path(['audit'], asked);
  const first = useResource<Log>(query);
  const [version, setVersion] = useState(0);
  const changed = () => setVersion((old) => old + 1);
  const known = useRef<{ of: string; tail: Tail<AuditRow>; place: { next: string | null } }>(undefined);
  // After a gap the first page is asked for again. It joins what was loaded, so that a person far down stays there.
  const { tail, place } = useMemo(() => {
    const { current } = known;
    const joins = current?.of === query && current.tail.count > 0 && !current.tail.isFull && (!first.data || current.tail.renew(first.data.items));
    if (!joins) known.current = { of: query, tail: new Tail(first.data?.items ?? []), place: { next: first.data?.next ?? null } };
    return known.current!;
  }, [first.data, query]);
  const isPlain = !filter.until && !filter.reason && !filter.differs;
  useEffect(
    () =>
      listen('audit', (event) => {
        const row = event.item as AuditRow | undefined;
        if (!row || !isPlain || !fits(row, filter)) return;
        tail.add(row);
        if (tail.isFull) first.reload();
        changed();
      }),
    [tail],
  );
  const more = useDeed(async () => {
    if (!place.next) return;
    const page = await get<Log>(path(['audit'], { ...asked, cursor: place.next, limit: OLDER_ROWS }));
    tail.append(page.items);
    place.next = page.next;
    changed();
  });
  return {
    of: query,
    tail,
    version: `${version} ${tail.count}`,
    empty: first.data?.empty ?? null,
    error: first.data ? undefined : first.error,
    isLoading: first.isLoading,
    reload: first.reload,
    next: place.next,
    more: () => void more.run(),
    isMore: more.isBusy,
    moreError: more.error,
  };
}

/** Whether a new entry belongs into the shown list: equal fields only, no rule of the server. */
function fits(row: AuditRow, filter: Filter): boolean {
  if ((filter.kind ?? 'call') !== 'all' && row.kind !== (filter.kind ?? 'call')) return false;
  if (row.kind === 'notice') return !filter.tool && !filter.caller && !filter.status && !filter.origin;
  return (['tool', 'caller', 'status', 'origin'] as const).every((name) => !filter[name] || filter[name] === row[name]);
}

function Filters({ filter }: { filter: Filter }) {
  const { state } = connection.value;
  const input = (name: 'tool' | 'caller') => (
    <input
      type="search"
      aria-label={name}
      placeholder={name}
      key={filter[name] ?? ''}
      defaultValue={filter[name] ?? ''}
      onChange={(event) => go(withQuery({ [name]: event.currentTarget.value }))}
      onKeyDown={(event) => event.key === 'Enter' && go(withQuery({ [name]: event.currentTarget.value }))}
      data-test={`filter-${name}`}
    />
  );
  const pick = (name: keyof Filter, options: [string, string][]) => (
    <select aria-label={name} value={filter[name] ?? ''} onChange={(event) => go(withQuery({ [name]: event.currentTarget.value }))} data-test={`filter-${name}`}>
      {options.map(([value, label]) => (
        <option value={value}>{label}</option>
      ))}
    </select>
  );
  const extra = (['until', 'reason', 'differs', 'origin'] as const).filter((name) => filter[name]);
  const exported = (format: string) => `/api/v1${path(['audit', 'export'], { ...filter, kind: filter.kind ?? 'call', format })}`;
  return (
    <div class="list-head">
      <div class="filters">
        {input('tool')}
        {input('caller')}
        {pick('status', [['', 'any end'], ...['done', 'refused', 'failed', 'cancelled', 'crashed', 'open'].map((word) => [word, word] as [string, string])])}
        {pick('kind', [['', 'calls'], ['notice', 'notices'], ['all', 'both']])}
        {pick('since', [['', 'any time'], ['1h', 'last hour'], ['24h', 'last day'], ['7d', 'last week'], ['30d', 'last month']])}
      </div>
      <div class="row">
        <span class="dim hide-small">{state === 'live' ? 'new entries appear by themselves' : 'not following: no connection'}</span>
        <span class="grow" />
        {extra.map((name) => (
          <button type="button" class="chip" onClick={() => replace(withQuery({ [name]: undefined }))}>
            {name} <T text={filter[name]} /> <Icon name="no" />
            <span class="hide">remove</span>
          </button>
        ))}
        <a class="button small quiet" href={exported('jsonl')} download="audit.jsonl" data-test="export">
          Export JSON
        </a>
        <a class="button small quiet" href={exported('csv')} download="audit.csv">
          CSV
        </a>
      </div>
    </div>
  );
}

function Row({ row, isAt, filter }: { row: AuditRow; isAt: boolean; filter: Filter }) {
  const href = link('audit', [row.id], filter);
  if (row.kind === 'notice') {
    return (
      <a class="entry" href={href} aria-current={isAt ? 'true' : undefined} data-row data-test="entry">
        <span class="tag">note</span>
        <span class="name"><T text={row.act} /></span>
        <span class="side"><Time at={row.atMs} /></span>
        <span class="sub"><T text={row.message} /></span>
        <span class="sub-side dim"><T text={row.by} /></span>
      </a>
    );
  }
  return (
    <a class="entry" href={href} aria-current={isAt ? 'true' : undefined} data-row data-test="entry" data-status={row.status}>
      <Risk level={row.risk} />
      <span class="name"><T text={row.tool} /></span>
      <span class="side">
        <span class={`tag ${row.status}`}>{row.status}</span>
        <Time at={row.atMs} />
      </span>
      <span class="sub">
        <T text={row.caller} /> · {row.origin}
        {row.message && <> · <T text={row.message} /></>}
      </span>
      <span class="sub-side dim"><Micros us={row.elapsedUs} /></span>
    </a>
  );
}

interface Happening {
  kind: string;
  words: string;
  atUs?: number | null;
  us?: number | null;
  ok?: boolean;
  raw: unknown;
}
interface Call extends CallRow {
  gates: Gate[];
  decided: number | null;
  argumentsText: string | null;
  arguments: unknown;
  argumentsDigest: string | null;
  resultDigest: string | null;
  riskReasons: string[];
  events: Happening[];
  eventsDropped: number;
  timing: { totalUs: number; runUs: number; cpuUs: number } | null;
  shadow: unknown;
  children: CallRow[];
  parent: CallRow | null;
  question: string | null;
  hash: string;
  explain: string[];
}

function Detail({ id }: { id: string }) {
  const entry = useResource<Call | (AuditRow & { kind: 'notice' })>(path(['audit', id]), ['audit']);
  if (entry.isLoading) return <Loading what="the entry" />;
  if (!entry.data) return entry.error ? <Failed error={entry.error} retry={entry.reload} /> : null;
  const row = entry.data;
  if (row.kind === 'notice') {
    return (
      <article data-test="entry-view">
        <div class="detail-head">
          <span class="tag">notice</span>
          <h2><T text={row.act} /></h2>
        </div>
        <p class="section"><T text={row.message} lines="many" /></p>
        <Facts rows={[['when', <Time at={row.atMs} isExact />], ['by', <T text={row.by} />], ['through', row.through], ['about', <T text={row.about ?? '–'} />], ['sequence', row.sequence]]} />
        <Section title="Details">
          <Pre text={JSON.stringify(row.details, null, 2)} label="details" />
        </Section>
        <Raw id={row.id} />
      </article>
    );
  }
  return <CallView call={row as Call} />;
}

function CallView({ call }: { call: Call }) {
  const asTest = useDeed(async () => {
    const tool = await get<Tool>(path(['tools', call.tool]));
    if (!keepTestValues(tool, call.arguments)) throw new Refused(0, 'studio.page', `${call.tool} is not a tool of your own`, 'copy it as a new one first', undefined);
    go(link('tools', [call.tool, 'edit']));
  });
  return (
    <article data-test="entry-view" data-status={call.status}>
      <div class="detail-head">
        <Risk risk={call.risk ? { level: call.risk, label: '', reasons: call.riskReasons } : null} isLong />
        <h2><T text={call.tool} /></h2>
        <span class={`tag ${call.status}`}>{call.status}</span>
        <div class="row">
          <a class="button small" href={link('inspector', [call.tool], { from: call.id })} data-test="again">
            Call again
          </a>
          {call.arguments !== null && call.arguments !== undefined && (
            <Button class="small" isBusy={asTest.isBusy} onClick={() => void asTest.run()} test="make-test-value">
              Make a test value
            </Button>
          )}
          <a class="button small" href={link('policy', ['edit'], { tool: call.tool, caller: call.caller })} data-test="make-rule">
            Make a rule
          </a>
          <Copy text={location.href} label="Link" />
        </div>
      </div>
      {asTest.error && <Failed error={asTest.error} />}
      {call.message && (
        <div class="section">
          <Note kind={call.status === 'done' ? 'info' : 'error'}>
            <p><T text={call.message} /></p>
            {call.code && <p class="dim"><a href={link('audit', [], { reason: call.code })}><code>{call.code}</code></a></p>}
          </Note>
        </div>
      )}
      {beyondGates(call.explain, call.gates).length > 0 && (
        <Section title="In words">
          {beyondGates(call.explain, call.gates).map((sentence) => (
            <p><T text={sentence} /></p>
          ))}
        </Section>
      )}
      <Section title="Gates">
        <Gates gates={call.gates} decided={call.decided} isTimed />
      </Section>
      <Waterfall call={call} />
      {call.children.length > 0 && (
        <Section title={`Called ${count(call.children.length, 'tool')}`} test="children">
          <Children call={call} />
        </Section>
      )}
      <Section title="Arguments" aside={call.argumentsText ? <Copy text={call.argumentsText} /> : undefined}>
        {call.argumentsText ? <Pre text={call.argumentsText} label="arguments" /> : <p class="dim">Only their digest is recorded.</p>}
      </Section>
      <Section title="Facts">
        <Facts
          rows={[
            ['caller', <a href={link('callers', [call.caller])}><T text={call.caller} /></a>],
            ['door', call.origin],
            ['began', <Time at={call.atMs} isExact />],
            ['took', <Micros us={call.elapsedUs} />],
            ...(call.timing ? [['running, CPU', <><Micros us={call.timing.runUs} />, <Micros us={call.timing.cpuUs} /></>] as [string, preact.ComponentChildren]] : []),
            ...(call.parent ? [['part of', <a href={link('audit', [call.parent.id])}><T text={call.parent.tool} /></a>] as [string, preact.ComponentChildren]] : []),
            ...(call.question ? [['approval', <a href={link('inbox', [call.question], { show: 'all' })}>the question and its answer</a>] as [string, preact.ComponentChildren]] : []),
            ['risk because', call.riskReasons.length ? <T text={call.riskReasons.join('; ')} /> : <span class="dim">nothing raises it</span>],
            ['call', <code>{call.id}</code>],
            ['result digest', call.resultDigest ? <code>{call.resultDigest}</code> : <span class="dim">–</span>],
            ['hash', <code>{call.hash}</code>],
          ]}
        />
      </Section>
      {call.shadow !== null && call.shadow !== undefined && (
        <Fold title="Shadow rules said otherwise" isOpen>
          <Pre text={JSON.stringify(call.shadow, null, 2)} label="shadow rules" />
        </Fold>
      )}
      <Raw id={call.id} />
      <div class="row section">
        <a class="button small" href={link('audit', [], { verify: 1, from: call.id })}>
          Verify the chain
        </a>
        <a class="button small quiet" href={link('audit', [], { tool: call.tool })}>
          All calls of <T text={call.tool} />
        </a>
      </div>
    </article>
  );
}

/** Where the time went: before the run, the run, and what it did outside of its sandbox. */
function Waterfall({ call }: { call: Call }) {
  const { timing, events } = call;
  if (!events.length && !timing?.runUs) return null;
  const total = Math.max(timing?.totalUs ?? 0, 1);
  // Gates and people come before the run; events are counted from its beginning.
  const start = timing ? Math.max(0, timing.totalUs - timing.runUs) : 0;
  const untimed = events.filter((event) => event.us === undefined || event.us === null);
  return (
    <Section title="Where the time went" aside={call.eventsDropped ? `${call.eventsDropped} more are not recorded` : undefined} test="waterfall">
      {timing && (
        <div class="fall">
          {before(call, start).map(([label, at, us]) => (
            <Fall label={label} at={at} us={us} total={total} isBad={false} kind="" />
          ))}
          {timing.runUs > 0 && <Fall label={call.tool} at={start} us={timing.runUs} total={total} isBad={call.status === 'failed'} kind="run" />}
          {events.filter((event) => !untimed.includes(event)).map((event) => (
            <Fall label={event.words} at={start + (event.atUs ?? 0)} us={event.us ?? null} total={total} isBad={event.ok === false} kind={event.kind} isInner />
          ))}
        </div>
      )}
      {untimed.length > 0 && (
        <ol class="touches">
          {untimed.map((event) => (
            <li>
              <span class="tag">{event.kind}</span>
              <span><T text={event.words} /></span>
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}

/** What came before the run: the gates, and apart from them the wait for a person. */
function before(call: Call, start: number): [string, number, number][] {
  const asked = call.gates.findIndex((gate) => gate.gate === 'approval');
  const us = (gates: Gate[]) => gates.reduce((sum, gate) => sum + (gate.us ?? 0), 0);
  const waited = call.gates[asked]?.us;
  // Records of older versions have one time for both.
  if (waited === null || waited === undefined) return [[call.question ? 'gates, and waiting for people' : 'gates', 0, start]];
  const first = us(call.gates.slice(0, asked));
  const last = us(call.gates.slice(asked + 1));
  const rows: [string, number, number][] = [['gates', 0, first], [call.question ? 'waiting for a person' : 'approval', first, waited]];
  return last > 0 ? [...rows, ['gates after it', first + waited, last]] : rows;
}

function Children({ call }: { call: Call }) {
  const total = Math.max(call.elapsedUs ?? 0, ...call.children.map((child) => (child.atMs - call.atMs) * 1000 + (child.elapsedUs ?? 0)), 1);
  return (
    <div class="fall">
      <Fall label={call.tool} at={0} us={call.elapsedUs} total={total} isBad={call.status !== 'done'} kind="script" />
      {call.children.map((child) => (
        <Fall label={child.tool} at={(child.atMs - call.atMs) * 1000} us={child.elapsedUs} total={total} isBad={child.status !== 'done'} kind={child.status} to={link('audit', [child.id])} isInner />
      ))}
    </div>
  );
}

function Fall({ label, at, us, total, isBad, kind, to, isInner }: { label: string; at: number | null; us: number | null; total: number; isBad: boolean; kind: string; to?: string; isInner?: boolean }) {
  const x = Math.max(0, Math.min(99, ((at ?? 0) / total) * 100));
  const width = Math.max(1, Math.min(100 - x, ((us ?? 0) / total) * 100));
  const words = <>{(isInner || kind) && <span class="dim">{isInner ? '└ ' : ''}{kind} </span>}<T text={label} /></>;
  return (
    <div class={`fall-row ${isBad ? 'bad' : ''}`}>
      <span class="label" title={visible(label)}>
        {to ? <a href={to}>{words}</a> : words}
        {isBad && <span class="hide"> failed</span>}
      </span>
      {at === null && us === null ? <span class="dim">time not recorded</span> : (
        <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
          <rect x={x} y="1" width={width} height="8" rx="1" />
        </svg>
      )}
      <span class="took">{us === null ? '' : micros(us)}</span>
    </div>
  );
}

function Raw({ id }: { id: string }) {
  const [records, setRecords] = useState<string[]>();
  const load = useDeed(async () => setRecords((await get<{ records: string[] }>(path(['audit', id, 'raw']))).records));
  return (
    <details class="fold section" onToggle={(event) => event.currentTarget.open && !records && void load.run()}>
      <summary>Raw record, as in the log</summary>
      <div class="fold-body stack">
        {load.error && <Failed error={load.error} />}
        {records?.map((record) => (
          <Pre text={record} label="record" />
        ))}
      </div>
    </details>
  );
}

interface Verified {
  ok: boolean;
  records: number;
  entries: number;
  open: number;
  checkpoints: number;
  notices: number;
  cuts: number;
  head: string;
  broken: { sequence: number; callId: string | null; what: string } | null;
  tookMs: number;
  command: string;
}

function Verify({ filter }: { filter: Filter }) {
  const [head, setHead] = useState('');
  const [result, setResult] = useState<{ at: number; value: Verified }>();
  const verify = useDeed(async () => setResult({ at: Date.now(), value: await post<Verified>('/audit/verify', head.trim() ? { head: head.trim() } : {}) }));
  useEffect(() => void verify.run(), []);
  const value = result?.value;
  return (
    <article data-test="verify-view">
      <div class="detail-head">
        <h2>Verify the chain</h2>
        <div class="row">
          <a class="button small quiet" href={link('audit', [], filter)}>
            Close
          </a>
        </div>
      </div>
      <p class="section dim">Every record holds the hash of the one before it. The server reads the whole log and computes every hash again.</p>
      {verify.error && <Failed error={verify.error} />}
      {!value && verify.isBusy && <Loading what="the whole log" />}
      {value && (
        <div class="section">
          <Note kind={value.ok ? 'good' : 'error'} test="verified">
            <p>
              <strong>{value.ok ? 'Whole: no record was changed, removed or inserted.' : 'Broken.'}</strong>
            </p>
            {value.broken && (
              <p>
                <T text={value.broken.what} /> (record {value.broken.sequence}
                {value.broken.callId && <>, <a href={link('audit', [value.broken.callId])}>the call</a></>})
              </p>
            )}
            <p class="dim">
              checked at {clock(result.at)} in {duration(value.tookMs)}
            </p>
          </Note>
        </div>
      )}
      {value && (
        <Section title="Numbers">
          <Facts rows={[['records', value.records.toLocaleString('en')], ['calls', value.entries.toLocaleString('en')], ['notices', value.notices.toLocaleString('en')], ['open', value.open], ['checkpoints', value.checkpoints], ['cuts', value.cuts], ['head', <><code>{value.head}</code> <Copy text={value.head} /></>]]} />
        </Section>
      )}
      <Section title="Compare with a head you kept">
        <form class="row" onSubmit={(event) => (event.preventDefault(), void verify.run())}>
          <input class="mono grow" aria-label="Head" placeholder="SEQUENCE:HASH" value={head} onInput={(event) => setHead(event.currentTarget.value)} spellcheck={false} />
          <Button isSubmit isBusy={verify.isBusy} test="verify-again">
            Verify
          </Button>
        </form>
        <p class="hint">A log that was cut at its end is whole by itself; only a head kept elsewhere shows it.</p>
      </Section>
      {value && (
        <Section title="The same at a terminal, without this page" aside={<Copy text={value.command} />}>
          <Pre text={value.command} label="command" />
        </Section>
      )}
    </article>
  );
}
