// Questions that wait for a person. The evidence stays beside the buttons; deny is focused; nothing can be
// answered in the moment after something changed, or without a connection.
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get, path, post, Refused } from '../lib/api';
import { count } from '../lib/text';
import { now, relative, span } from '../lib/format';
import { connection, listen } from '../lib/live';
import { drop, keep, kept } from '../lib/draft';
import { useDeed, useResource } from '../lib/resource';
import { link, route } from '../lib/router';
import { canApprove, door } from '../lib/session';
import type { Change, Gate, Question, QuestionRow, Risk as RiskFacts } from '../lib/types';
import { Button, Changes, Copy, Empty, Escaped, Facts, Failed, Findings, Fold, Gates, isTyping, Loading, Note, Pre, Reasons, Risk, Section, T, Time, Tree, useInert, useListKeys } from '../ui/common';
import { Editor } from '../ui/editor';
import { Page, Split } from '../ui/frame';
import { isWished, notify, wish } from '../ui/notify';
import { Rows } from '../ui/rows';

interface Inbox {
  items: QuestionRow[];
  waiting: number;
  next: string | null;
}

export default function InboxPage() {
  const { path: parts, query } = route.value;
  const show = query.get('show');
  const state = show === 'all' ? 'all' : 'live';
  const inbox = useQuestions(state);
  const list = useListKeys();
  const { pending, rest } = inbox;
  const id = parts[0];
  const row = (item: QuestionRow) => <Row item={item} isAt={item.id === id} show={show} />;
  return (
    <Page title="Inbox" isWide>
      <Split
        back={link('inbox', [], { show })}
        list={
          <>
            <div class="list-head">
              <div class="row">
                <strong data-test="waiting">{inbox.waiting === undefined ? 'Inbox' : `${inbox.waiting} waiting`}</strong>
                {pending[0] && <Oldest at={pending[0].askedAtMs} />}
                <span class="grow" />
                <Bell />
                <a class="button small quiet" href={link('inbox', id ? [id] : [], { show: state === 'all' ? undefined : 'all' })}>
                  {state === 'all' ? 'Open only' : 'Answered too'}
                </a>
              </div>
            </div>
            <div class="list-body" ref={list}>
              {inbox.error && !inbox.isLoaded && <Failed error={inbox.error} retry={inbox.reload} />}
              {inbox.isLoading && <Loading what="the questions" />}
              {pending.length > 0 && <Rows label="Questions that wait" count={pending.length} item={(index) => pending[index]!} keyOf={keyOf} version={pending} current={id} row={row} />}
              {inbox.isLoaded && !pending.length && (
                <Empty title="Nothing waits for you">
                  <p>When a call needs a person, it appears here at once, with its arguments and its risk, whichever client made it.</p>
                  <p>
                    A tool asks by its own approval mode, or because of a rule: see <a href={link('policy')}>Policy</a>.
                  </p>
                </Empty>
              )}
              {rest.length > 0 && <div class="entry-group">Answered</div>}
              {rest.length > 0 && <Rows label="Answered questions" count={rest.length} item={(index) => rest[index]!} keyOf={keyOf} version={rest} current={id} row={row} more={inbox.more} />}
              {inbox.moreError && <Failed error={inbox.moreError} />}
            </div>
          </>
        }
        detail={id ? <Detail key={id} id={id} settle={inbox.settle} /> : null}
      />
    </Page>
  );
}

const keyOf = (item: QuestionRow) => item.id;

/** The questions, followed: an event brings the question it is about, so that one more among a thousand costs one row. */
function useQuestions(state: 'all' | 'live') {
  const address = path(['inbox'], { state });
  const inbox = useResource<Inbox>(address);
  const [version, setVersion] = useState(0);
  const known = useRef(new Map<string, QuestionRow>());
  const facts = useMemo(() => {
    const rows = new Map((inbox.data?.items ?? []).map((item) => [item.id, item]));
    // Questions answered while the page was open stay in the list until it is left.
    for (const item of known.current.values()) if (item.state !== 'pending' && !rows.has(item.id)) rows.set(item.id, item);
    known.current = rows;
    return { waiting: inbox.data?.waiting, next: inbox.data?.next ?? null };
  }, [inbox.data]);
  useEffect(
    () =>
      listen('inbox', (event) => {
        const id = event.id as string;
        const item = event.item as QuestionRow | undefined;
        if (!item) return inbox.reload();
        known.current.set(id, item);
        facts.waiting = event.waiting as number;
        setVersion((old) => old + 1);
      }),
    [facts],
  );
  // The answer to a person's own click is here before the event about it: the list must not offer the question again.
  const settle = useCallback(
    (question: QuestionRow) => {
      if (known.current.get(question.id)?.state !== 'pending') return;
      known.current.set(question.id, question);
      if (facts.waiting) facts.waiting -= 1;
      setVersion((old) => old + 1);
    },
    [facts],
  );
  const more = useDeed(async () => {
    if (!facts.next) return;
    const page = await get<Inbox>(path(['inbox'], { state, cursor: facts.next }));
    for (const item of page.items) known.current.set(item.id, item);
    facts.next = page.next;
    setVersion((old) => old + 1);
  });
  const { pending, rest } = useMemo(() => {
    const all = [...known.current.values()];
    const sorted = (isPending: boolean) => all.filter((item) => (item.state === 'pending') === isPending).sort((one, two) => one.askedAtMs - two.askedAtMs);
    return { pending: sorted(true), rest: sorted(false).reverse() };
  }, [facts, version]);
  useNews(pending, inbox.data !== undefined);
  return {
    pending,
    rest,
    waiting: facts.waiting,
    isLoaded: inbox.data !== undefined,
    isLoading: inbox.isLoading,
    error: inbox.error,
    reload: inbox.reload,
    settle,
    more: facts.next && !more.error ? () => void more.run() : undefined,
    moreError: more.error,
  };
}

function Oldest({ at }: { at: number }) {
  return <span class="dim hide-small">oldest {span(now.value - at)}</span>;
}

function Row({ item, isAt, show }: { item: QuestionRow; isAt: boolean; show: string | null }) {
  return (
    <a class={`entry ${item.state === 'pending' ? '' : 'over'}`} href={link('inbox', [item.id], { show })} aria-current={isAt ? 'true' : undefined} data-row data-test="question" data-state={item.state} data-tool={item.tool}>
      <Risk risk={item.risk} />
      <span class="name"><T text={item.tool} /></span>
      <span class="side">{item.state === 'pending' ? <Time at={item.askedAtMs} /> : <span class={`tag ${TONE[item.state]}`}>{item.state}</span>}</span>
      <span class="sub">
        <T text={item.caller} />
        {item.kind === 'trust' && <> · step in trust</>}
      </span>
    </a>
  );
}

const TONE: Record<QuestionRow['state'], string> = { pending: 'warn', approved: 'good', used: 'good', declined: 'error', dismissed: '', malformed: 'error', revoked: 'error', expired: '' };

/** A notification when a question comes, not for those that were there when the page opened. */
function useNews(pending: QuestionRow[], isLoaded: boolean) {
  const known = useRef<Set<string> | undefined>(undefined);
  useEffect(() => {
    if (!isLoaded) return;
    const ids = new Set(pending.map((item) => item.id));
    if (known.current) for (const item of pending) if (!known.current.has(item.id)) notify(item);
    known.current = ids;
  }, [pending, isLoaded]);
}

function Bell() {
  const [isOn, setOn] = useState(isWished());
  if (typeof Notification === 'undefined') return null;
  return (
    <Button kind="quiet" class="small" aria-pressed={isOn} title="a desktop notification for each new question, while a tab of the Studio is open" onClick={() => void wish(!isOn).then(setOn)}>
      {isOn ? 'Notifications on' : 'Notify me'}
    </Button>
  );
}

function Detail({ id, settle }: { id: string; settle: (question: QuestionRow) => void }) {
  const question = useResource<Question>(path(['inbox', id]), ['inbox', 'settings', 'tools']);
  const { data } = question;
  useEffect(() => {
    if (data && data.state !== 'pending') settle(data);
  }, [data, settle]);
  if (question.isLoading) return <Loading what="the question" />;
  if (!question.data) return question.error ? <Failed error={question.error} retry={question.reload} /> : null;
  return <QuestionView question={question.data} set={question.set} reload={question.reload} />;
}

function QuestionView({ question, set, reload }: { question: Question; set: (question: Question) => void; reload: () => void }) {
  const { risk, from } = question;
  return (
    <article data-test="question-view" data-state={question.state}>
      <div class="detail-head">
        <Risk risk={risk} isLong />
        <h2><T text={question.sentence} /></h2>
      </div>
      <Settled question={question} />
      {question.stale && (
        <Note kind="warn" test="stale">
          <strong>Stale: this answer would no longer count.</strong>
          <p><T text={question.staleWhy ?? 'something the question depends on has changed'} /></p>
        </Note>
      )}
      {question.prompt && (
        <Section title="The tool asks">
          <p class="question-prompt"><T text={question.prompt} lines="many" /></p>
        </Section>
      )}
      <Section title="Why this risk">
        <Reasons risk={risk} />
      </Section>
      <Section title="What will be touched" test="touches">
        {question.touches.length ? (
          <ul class="touches">
            {question.touches.map((touch) => (
              <li>
                <span class={`tag ${['destructive', 'file-write', 'secret'].includes(touch.kind) ? 'warn' : ''}`}>{touch.kind}</span>
                <span><T text={touch.words} /></span>
              </li>
            ))}
          </ul>
        ) : (
          <p class="dim">No file, no host, no secret: it only computes.</p>
        )}
      </Section>
      <Section title="Arguments" test="arguments" aside={<Copy text={question.argumentsText} />}>
        {question.argumentsTree ? <Tree node={question.argumentsTree} /> : <Pre text={question.argumentsText} label="arguments" isTall />}
        {question.masked && <p class="dim">Secrets are masked.</p>}
      </Section>
      {question.patch.map((part) => (
        <Section title={PATCH[part.name] ?? part.name} test={`patch-${part.name}`}>
          <Pre text={part.text} label={part.name} isTall />
        </Section>
      ))}
      <Section title="Compared with the last approved call">
        {question.lastApproved ? (
          <>
            <p class="dim">
              Approved by <T text={question.lastApproved.by ?? 'a person'} /> <Time at={question.lastApproved.atMs} />, same tool and caller. <a href={link('inbox', [question.lastApproved.id], { show: 'all' })}>Open</a>
            </p>
            <Changes changes={question.lastApproved.diff} />
          </>
        ) : (
          <p class="dim">No earlier call of this tool by this caller was approved.</p>
        )}
      </Section>
      <Section title="Where it comes from">
        <Facts
          rows={[
            ['caller', <a href={link('callers', [from.caller])}><T text={from.caller} /></a>],
            ['through', from.door ?? <span class="dim">–</span>],
            ...(from.parent ? [['part of', <a href={link('audit', [from.parent.callId])}><T text={from.parent.tool} /></a>] as [string, preact.ComponentChildren]] : []),
            ['asked because', <><T text={question.why} />{question.rule && <> <a href={link('policy', [], { rule: question.rule })}>rule</a></>}</>],
            ['who may answer', <T text={question.mayAnswer} />],
            ['asked', <Time at={question.askedAtMs} />],
            ['call', question.callId ? <a href={link('audit', [question.callId])}><code>{question.callId}</code></a> : <span class="dim">–</span>],
          ]}
        />
      </Section>
      {from.script && (
        <Section title={from.script.lines.filter((line) => line.waits).length > 1 ? 'The script; one of the marked lines waits' : 'The script, and the line that waits'} test="script">
          <ScriptLines script={from.script} />
        </Section>
      )}
      {question.state === 'pending' && <Decide question={question} set={set} reload={reload} />}
      {question.state === 'approved' && <Revoke question={question} set={set} />}
    </article>
  );
}

const PATCH: Record<string, string> = { files: 'Every file that would change', 'left out': 'What is not copied', diff: 'The changes' };

/** A script whole, scrolled to the line that waits. */
function ScriptLines({ script }: { script: NonNullable<Question['from']['script']> }) {
  const box = useRef<HTMLDivElement>(null);
  const isOne = script.lines.filter((line) => line.waits).length === 1;
  useEffect(() => {
    const line = box.current?.querySelector<HTMLElement>('.waits');
    if (box.current && line) box.current.scrollTop = line.offsetTop - box.current.clientHeight / 2;
  }, [script.words]);
  return (
    <>
      <p class="dim"><T text={script.words} /></p>
      <div class="script-lines scroll" ref={box} role="region" aria-label="script" tabIndex={0}>
        {script.lines.map((line) => (
          <div class={`script-line ${line.waits ? 'waits' : ''}`}>
            <span class="number">{line.number}</span>
            <span class="sign">{line.waits && <><span aria-hidden="true">▸</span><span class="hide">{isOne ? 'waits: ' : 'may wait: '}</span></>}</span>
            <span class="text"><Escaped text={line.text} /></span>
          </div>
        ))}
      </div>
    </>
  );
}

/** What became of a question that waits no longer. */
function Settled({ question }: { question: Question }) {
  const { answered, state } = question;
  if (state === 'pending') return null;
  const kind = TONE[state] === 'good' ? 'good' : TONE[state] === 'error' ? 'error' : 'info';
  const words: Record<Exclude<QuestionRow['state'], 'pending'>, string> = {
    approved: 'Approved, not used yet',
    used: 'Approved and used',
    declined: 'Denied',
    dismissed: 'Not answered: the question was closed',
    malformed: 'The answer could not be read',
    revoked: 'Approved, then revoked',
    expired: 'Expired without an answer',
  };
  return (
    <div class="section">
      <div class={`note ${kind}`} role="status" data-test="settled">
        <p>
          <strong>{words[state]}</strong>
          {answered && (
            <>
              {' '}
              by <T text={answered.by} /> through {answered.channel} <Time at={answered.atMs} />
              {answered.scope && <>, for {answered.scope}</>}
            </>
          )}
        </p>
        {answered?.note && (
          <p>
            “<T text={answered.note} />”
          </p>
        )}
        {(answered?.usedByCall ?? question.callId) && (
          <p>
            <a href={link('audit', [answered?.usedByCall ?? question.callId!])}>See the call in the audit log</a>
          </p>
        )}
      </div>
      {answered?.changed && answered.changed.length > 0 && (
        <Fold title="Approved with changes" isOpen>
          <Changes changes={answered.changed} />
        </Fold>
      )}
    </div>
  );
}

type Choice = 'none' | 'approve' | 'deny' | 'change';

function Decide({ question, set, reload }: { question: Question; set: (question: Question) => void; reload: () => void }) {
  const [choice, setChoice] = useState<Choice>('none');
  const [scope, setScope] = useState('once');
  const [note, setNote] = useState('');
  const [conflict, setConflict] = useState<string>();
  const isInert = useInert(`${question.id} ${question.revision}`, question.inertMs);
  const isOffline = connection.value.state !== 'live';
  const deny = useRef<HTMLButtonElement>(null);
  const confirm = useRef<HTMLButtonElement>(null);
  const reason = useRef<HTMLInputElement>(null);
  // What a person would confirm is gone when the question changed.
  useEffect(() => {
    setChoice('none');
  }, [question.revision]);
  useEffect(() => {
    if (!isInert && choice === 'none') deny.current?.focus({ preventScroll: true });
  }, [isInert, choice]);
  useEffect(() => {
    if (choice === 'approve') confirm.current?.focus();
    if (choice === 'deny') reason.current?.focus();
  }, [choice]);
  const answer = useDeed(async (body: Record<string, unknown>) => {
    try {
      set(await post<Question>(path(['inbox', question.id, 'answer']), { revision: question.revision, ...body }));
      drop(`arguments.${question.id}`);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 409) throw error;
      setConflict(error.message);
      const current = (error.body as { error?: { details?: { current?: Question } } }).error?.details?.current;
      if (current) set(current);
      else reload();
    }
  });
  const cannot = door.value !== 'in' ? 'sign in first' : !canApprove.value ? 'your role may look, not answer' : isOffline ? 'no connection: nothing can be answered' : !question.canAnswer ? (question.cannotWhy ?? 'it cannot be answered here') : undefined;
  const isOff = cannot !== undefined || isInert || answer.isBusy;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || isOff) return;
      if (event.key === 'a') setChoice('approve');
      else if (event.key === 'd') setChoice('deny');
      else if (event.key === 'Escape') setChoice('none');
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [isOff]);
  const left = question.expiresAtMs - now.value;
  const picked = question.scopes.find((known) => known.scope === scope) ?? question.scopes[0];
  return (
    <div class="decide" data-test="decide" data-inert={isInert}>
      {conflict && (
        <Note kind="warn" test="conflict">
          <T text={conflict} />
        </Note>
      )}
      {answer.error && <Failed error={answer.error} />}
      {answer.error && findingsOf(answer.error) && <Findings findings={findingsOf(answer.error)!} />}
      {choice === 'none' && (
        <div class="row">
          <Button ref={deny} kind="danger" disabled={isOff} onClick={() => setChoice('deny')} test="deny">
            Deny <span class="kbd hide-small">d</span>
          </Button>
          <Button disabled={isOff} onClick={() => (setScope('once'), setChoice('approve'))} test="approve">
            Approve <span class="kbd hide-small">a</span>
          </Button>
          {question.canChange && (
            <Button kind="quiet" disabled={isOff} onClick={() => setChoice('change')} test="change">
              Approve with changes
            </Button>
          )}
          <span class="grow" />
          <span class="dim nowrap" title={new Date(question.expiresAtMs).toString()}>
            {left > 0 ? `${span(left)} left` : 'expired'}
          </span>
        </div>
      )}
      {cannot && <p class="dim" data-test="cannot"><T text={cannot} /></p>}
      {choice === 'approve' && (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (!isOff) void answer.run({ answer: 'approve', scope, ...(note ? { note } : {}) });
          }}
        >
          <fieldset>
            <legend>Approve for</legend>
            <div class="scopes">
              {question.scopes.map((known) => (
                <label>
                  <input type="radio" name="scope" value={known.scope} checked={scope === known.scope} onChange={() => setScope(known.scope)} />
                  <span>
                    <strong>{known.scope}</strong>: <T text={known.words} />
                  </span>
                </label>
              ))}
            </div>
          </fieldset>
          <div class="row">
            <Button ref={confirm} kind="primary" isSubmit isBusy={answer.isBusy} disabled={isOff} test="confirm-approve">
              Approve {picked ? picked.scope : 'once'}
            </Button>
            <Button kind="quiet" onClick={() => setChoice('none')}>
              Back <span class="kbd hide-small">Esc</span>
            </Button>
          </div>
        </form>
      )}
      {choice === 'deny' && (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (!isOff) void answer.run({ answer: 'deny', ...(note ? { note } : {}) });
          }}
        >
          <div class="field">
            <label for="deny-note">Reason for the caller, if you want to give one</label>
            <input id="deny-note" ref={reason} value={note} maxLength={500} onInput={(event) => setNote(event.currentTarget.value)} data-test="deny-note" />
          </div>
          <div class="row">
            <Button kind="danger" isSubmit isBusy={answer.isBusy} disabled={isOff} test="confirm-deny">
              Deny
            </Button>
            <Button kind="quiet" onClick={() => setChoice('none')}>
              Back
            </Button>
          </div>
        </form>
      )}
      {choice === 'change' && <WithChanges question={question} isOff={isOff} isBusy={answer.isBusy} approve={(args) => answer.run({ answer: 'approve', scope: 'once', arguments: args })} back={() => setChoice('none')} />}
    </div>
  );
}

function findingsOf(error: Refused) {
  const findings = (error.body as { error?: { details?: { findings?: import('../lib/types').Finding[] } } } | undefined)?.error?.details?.findings;
  return findings?.length ? findings : undefined;
}

interface Preview {
  ok: boolean;
  risk: RiskFacts | null;
  refused: string | null;
  findings: import('../lib/types').Finding[];
  gates: Gate[];
  diff: Change[];
}

/** Edit the arguments; the server says what that call would be before it is approved. */
function WithChanges({ question, isOff, isBusy, approve, back }: { question: Question; isOff: boolean; isBusy: boolean; approve: (args: unknown) => Promise<void>; back: () => void }) {
  const draft = `arguments.${question.id}`;
  const original = useMemo(() => JSON.stringify(question.arguments, null, 2), [question.id]);
  const [text, setText] = useState(() => kept(draft)?.text ?? original);
  const [preview, setPreview] = useState<{ of: string; value: Preview }>();
  const look = useDeed(async (typed: string, args: unknown) => {
    setPreview({ of: typed, value: await post<Preview>(path(['inbox', question.id, 'preview']), { arguments: args }) });
  });
  const parsed = useMemo(() => {
    try {
      return { value: JSON.parse(text) as unknown };
    } catch (error) {
      return { why: (error as Error).message };
    }
  }, [text]);
  const type = (typed: string) => {
    setText(typed);
    keep(draft, typed, question.revision);
  };
  useEffect(() => {
    if (!('value' in parsed) || text === original) return;
    const timer = setTimeout(() => void look.run(text, parsed.value), 250);
    return () => clearTimeout(timer);
  }, [text]);
  const isCurrent = preview?.of === text;
  return (
    <div class="stack">
      <p class="dim">The call runs with your arguments, once. The caller is told what you changed.</p>
      <Editor text={text} language="json" label="arguments" onChange={type} test="change-editor" />
      {'why' in parsed && <p class="bad">Not JSON yet: <T text={parsed.why} /></p>}
      {look.error && <Failed error={look.error} />}
      {look.error && findingsOf(look.error) && <Findings findings={findingsOf(look.error)!} />}
      {isCurrent && preview && (
        <div data-test="preview">
          <div class="row">
            <Risk risk={preview.value.risk} isLong /> <span class={`tag ${preview.value.ok ? 'good' : 'error'}`}>{preview.value.ok ? 'can be approved' : 'would be refused'}</span> <T text={preview.value.refused} />
          </div>
          <Changes changes={preview.value.diff} />
          {preview.value.findings.length > 0 && <Findings findings={preview.value.findings} />}
          {!preview.value.ok && <Gates gates={preview.value.gates.filter((gate) => gate.verdict === 'stop')} />}
        </div>
      )}
      <div class="row">
        <Button kind="primary" isBusy={isBusy} disabled={isOff || !('value' in parsed) || !isCurrent || !preview?.value.ok} onClick={() => void approve((parsed as { value: unknown }).value)} test="confirm-change">
          Approve these arguments once
        </Button>
        <Button kind="quiet" onClick={() => (drop(draft), back())}>
          Back
        </Button>
      </div>
    </div>
  );
}

function Revoke({ question, set }: { question: Question; set: (question: Question) => void }) {
  const revoke = useDeed(async () => set(await post<Question>(path(['inbox', question.id, 'revoke']), {})));
  return (
    <div class="decide">
      {revoke.error && <Failed error={revoke.error} />}
      <div class="row">
        <Button kind="danger" disabled={!canApprove.value} isBusy={revoke.isBusy} onClick={() => void revoke.run()} test="revoke">
          Revoke the approval
        </Button>
        <span class="dim">It has been used {count(question.answered?.uses ?? 0, 'time')}; valid {relative(question.expiresAtMs, now.value)}.</span>
      </div>
    </div>
  );
}

