// Who calls tools: level, trust line by line, limits used, keys; pause and resume.
import { useState } from 'preact/hooks';
import { path, post, request } from '../lib/api';
import { exact } from '../lib/format';
import { useDeed, useResource } from '../lib/resource';
import { link, route } from '../lib/router';
import { canChange } from '../lib/session';
import type { RuleRow } from '../lib/types';
import { Button, Copy, Empty, Facts, Failed, Field, Icon, Loading, Note, Section, T, Time, useListKeys } from '../ui/common';
import { Page, Split } from '../ui/frame';

interface Key {
  id: string;
  name?: string;
  role: string;
  createdMs: number;
  expiresMs: number | null;
  expired: boolean;
}
interface CallerRow {
  name: string;
  paused: boolean;
  pausedAtMs: number | null;
  pausedBy: string | null;
  pausedWhy: string | null;
  deniedInARow: number;
  deniedInAll: number;
  level: string | null;
  earned: string | null;
  key: Key | null;
  lastSeenAtMs: number | null;
  calls: number | null;
}
interface Caller extends CallerRow {
  standing: string[];
  trust: { strategy: string; covered: boolean; tracks: { category: string | null; level: string; sinceMs: number | null; question: string | null; lines: string[] }[] } | null;
  limits: { name: string; words: string; kinds: { what: string; used: number; most: number }[] }[];
  rules: RuleRow[];
  answers: string | null;
}

export default function CallersPage() {
  const { path: parts, query } = route.value;
  const callers = useResource<{ items: CallerRow[] }>('/callers', ['callers', 'settings', 'audit']);
  const list = useListKeys();
  const at = parts[0];
  return (
    <Page
      title="Callers"
      isWide
      actions={
        canChange.value && (
          <a class="button small primary" href={link('callers', [], { new: 1 })} data-test="new-key">
            <Icon name="plus" /> New key
          </a>
        )
      }
    >
      <Split
        back={link('callers')}
        list={
          <div class="list-body" ref={list}>
            {callers.error && !callers.data && <Failed error={callers.error} retry={callers.reload} />}
            {callers.isLoading && <Loading what="the callers" />}
            {callers.data?.items.map((caller) => (
              <a class="entry" href={link('callers', [caller.name])} aria-current={caller.name === at ? 'true' : undefined} data-row data-test="caller" data-name={caller.name}>
                <Icon name="callers" />
                <span class="name"><T text={caller.name} /></span>
                <span class="side">
                  {caller.paused && <span class="tag error">paused</span>}
                  {caller.key?.expired && <span class="tag warn">key expired</span>}
                  {caller.lastSeenAtMs ? <Time at={caller.lastSeenAtMs} /> : 'never seen'}
                </span>
                <span class="sub">
                  {caller.level ?? 'no level'}
                  {caller.earned && <>, earned {caller.earned}</>}
                  {caller.calls !== null && <> · {caller.calls} calls</>}
                  {caller.deniedInAll > 0 && <> · {caller.deniedInAll} denied</>}
                </span>
              </a>
            ))}
            {callers.data && !callers.data.items.length && (
              <Empty title="No caller yet">
                <p>Each client gets its own name and key, so that rules, limits and the audit log tell them apart.</p>
                <p><a href={link('connect')}>Connect a client</a> or make a key here.</p>
              </Empty>
            )}
          </div>
        }
        detail={query.get('new') ? <NewKey /> : at ? <Detail key={at} name={at} /> : null}
      />
    </Page>
  );
}

function Detail({ name }: { name: string }) {
  const caller = useResource<Caller>(path(['callers', name]), ['callers', 'settings', 'audit']);
  if (caller.isLoading) return <Loading what="the caller" />;
  if (!caller.data) return caller.error ? <Failed error={caller.error} retry={caller.reload} /> : null;
  return <View caller={caller.data} set={caller.set} reload={caller.reload} />;
}

function View({ caller, set, reload }: { caller: Caller; set: (caller: Caller) => void; reload: () => void }) {
  const [note, setNote] = useState('');
  const [isPausing, setPausing] = useState(false);
  const pause = useDeed(async () => {
    set(await post<Caller>(path(['callers', caller.name, 'pause']), { note }));
    setPausing(false);
  });
  const resume = useDeed(async () => set(await post<Caller>(path(['callers', caller.name, 'resume']), {})));
  return (
    <article data-test="caller-view">
      <div class="detail-head">
        <h2><T text={caller.name} /></h2>
        {caller.level && <span class="tag">{caller.level}</span>}
        {caller.paused && <span class="tag error">paused</span>}
        <div class="row">
          <a class="button small" href={link('audit', [], { caller: caller.name })}>
            Calls
          </a>
          {canChange.value &&
            (caller.paused ? (
              <Button class="small" kind="primary" isBusy={resume.isBusy} onClick={() => void resume.run()} test="resume">
                Resume
              </Button>
            ) : (
              <Button class="small" kind="danger" onClick={() => setPausing(true)} test="pause">
                Pause
              </Button>
            ))}
        </div>
      </div>
      {[pause, resume].map((deed) => deed.error && <div class="section"><Failed error={deed.error} /></div>)}
      {isPausing && !caller.paused && (
        <form class="section note warn" onSubmit={(event) => (event.preventDefault(), void pause.run())}>
          <p>While a caller is paused, none of its calls runs.</p>
          <Field label="Reason">{(id) => <input id={id} value={note} maxLength={500} onInput={(event) => setNote(event.currentTarget.value)} />}</Field>
          <div class="row">
            <Button kind="danger" class="small" isSubmit isBusy={pause.isBusy} test="confirm-pause">
              Pause <T text={caller.name} />
            </Button>
            <Button kind="quiet" class="small" onClick={() => setPausing(false)}>
              Back
            </Button>
          </div>
        </form>
      )}
      {caller.paused && (
        <div class="section">
          <Note kind="error">
            <p>
              Paused by <T text={caller.pausedBy ?? '?'} /> <Time at={caller.pausedAtMs} />. <T text={caller.pausedWhy} />
            </p>
          </Note>
        </div>
      )}
      <Section title="Standing">
        <ul class="plain">
          {caller.standing.map((line) => (
            <li><T text={line} /></li>
          ))}
        </ul>
      </Section>
      {caller.trust && (
        <Section title={`Trust (${caller.trust.strategy})`}>
          {caller.trust.tracks.map((track) => (
            <div class="section">
              <p>
                <strong><T text={track.category ?? 'all tools'} /></strong> <span class="tag">{track.level}</span> {track.question && <a href={link('inbox', [track.question])}>a step waits for your answer</a>}
              </p>
              <ul class="plain dim">
                {track.lines.map((line) => (
                  <li><T text={line} /></li>
                ))}
              </ul>
            </div>
          ))}
          {canChange.value && caller.trust.covered && <Feedback name={caller.name} categories={caller.trust.tracks.flatMap((track) => track.category ?? [])} set={set} />}
        </Section>
      )}
      <Section title="Limits used">
        {caller.limits.length ? (
          caller.limits.map((limit) => (
            <div class="section" data-test="limit">
              <p class="dim"><T text={limit.words} /></p>
              {limit.kinds.map((kind) => (
                <div class="bar wide">
                  <span>{kind.what}</span>
                  <progress aria-label={`${kind.what} used`} max={kind.most || 1} value={kind.used} />
                  <span class="dim">{kind.used.toLocaleString('en')} of {kind.most.toLocaleString('en')}</span>
                </div>
              ))}
            </div>
          ))
        ) : (
          <p class="dim">No limit applies.</p>
        )}
      </Section>
      <Section title="Rules that name it">
        {caller.rules.length ? (
          <ul class="plain">
            {caller.rules.map((rule) => (
              <li>
                <span class={`tag ${rule.effect}`}>{rule.effect}</span> <a href={link('policy', [], { rule: rule.id })}><T text={rule.id} /></a> <T text={rule.words} />
              </li>
            ))}
          </ul>
        ) : (
          <p class="dim">None.</p>
        )}
      </Section>
      <Section title="Facts">
        <Facts
          rows={[
            ['level', <>{caller.level ?? 'none'}{caller.earned && `, earned ${caller.earned}`}</>],
            ['denied in a row', caller.deniedInARow],
            ['may answer itself', caller.answers ? `up to ${caller.answers}` : 'never'],
            ['last seen', <Time at={caller.lastSeenAtMs} />],
            ['key', caller.key ? <>{caller.key.id}, made {exact(caller.key.createdMs)}{caller.key.expiresMs && <>, until {exact(caller.key.expiresMs)}</>}</> : <span class="dim">none</span>],
          ]}
        />
      </Section>
      {caller.key && canChange.value && <Keys name={caller.name} reload={reload} />}
    </article>
  );
}

/** What a person says about a caller's work: it counts for what the caller earns. */
function Feedback({ name, categories, set }: { name: string; categories: string[]; set: (caller: Caller) => void }) {
  const [score, setScore] = useState('');
  const [category, setCategory] = useState('');
  const [note, setNote] = useState('');
  const give = useDeed(async () => {
    set(await post<Caller>(path(['callers', name, 'feedback']), { score: Number(score), category: category || null, note: note || null }));
    setScore('');
    setNote('');
  });
  return (
    <form class="form" onSubmit={(event) => (event.preventDefault(), void give.run())} data-test="feedback">
      <div class="form two">
        <Field label="Your score of its work, 0 to 10">{(id) => <input id={id} type="number" min="0" max="10" step="1" value={score} onInput={(event) => setScore(event.currentTarget.value)} data-test="score" />}</Field>
        <Field label="For">
          {(id) => (
            <select id={id} value={category} onChange={(event) => setCategory(event.currentTarget.value)}>
              <option value="">all tools</option>
              {categories.map((one) => (
                <option value={one}>{one}</option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <Field label="Note">{(id) => <input id={id} value={note} maxLength={500} onInput={(event) => setNote(event.currentTarget.value)} />}</Field>
      {give.error && <Failed error={give.error} />}
      <div class="row">
        <Button class="small" isSubmit disabled={score === ''} isBusy={give.isBusy} test="give-feedback">
          Give feedback
        </Button>
      </div>
    </form>
  );
}

function Keys({ name, reload }: { name: string; reload: () => void }) {
  const [made, setMade] = useState<string>();
  const [isSure, setSure] = useState(false);
  const rotate = useDeed(async () => setMade((await post<{ key: string }>(path(['keys', name, 'rotate']), { days: null })).key));
  const revoke = useDeed(async () => {
    await request('DELETE', path(['keys', name]), {});
    reload();
  });
  return (
    <Section title="Key">
      {[rotate, revoke].map((deed) => deed.error && <Failed error={deed.error} />)}
      {made && <Once value={made} />}
      <div class="row">
        <Button class="small" isBusy={rotate.isBusy} onClick={() => void rotate.run()}>
          Replace the key
        </Button>
        {isSure ? (
          <Button class="small" kind="danger" isBusy={revoke.isBusy} onClick={() => void revoke.run()}>
            Revoke: <T text={name} /> can no longer call
          </Button>
        ) : (
          <Button class="small" kind="quiet" onClick={() => setSure(true)}>
            Revoke
          </Button>
        )}
      </div>
    </Section>
  );
}

/** A key is shown once and kept nowhere. */
function Once({ value }: { value: string }) {
  return (
    <Note kind="good" test="made-key">
      <p>
        <strong>Copy it now: it is shown this once.</strong>
      </p>
      <div class="row">
        <code class="grow">{value}</code> <Copy text={value} />
      </div>
    </Note>
  );
}

function NewKey() {
  const [name, setName] = useState('');
  const [role, setRole] = useState('agent');
  const [days, setDays] = useState('');
  const [made, setMade] = useState<string>();
  const make = useDeed(async () => setMade((await post<{ key: string }>('/keys', { name, role, days: days ? Number(days) : null })).key));
  return (
    <article>
      <div class="detail-head">
        <h2>New key</h2>
      </div>
      <form class="form" onSubmit={(event) => (event.preventDefault(), void make.run())}>
        <Field label="Name of the caller" hint="Rules, limits and the audit log use it.">{(id) => <input id={id} class="mono" value={name} onInput={(event) => setName(event.currentTarget.value)} spellcheck={false} data-test="key-name" />}</Field>
        <Field label="Role" hint={role === 'agent' ? 'calls tools; approves nothing' : 'answers questions over HTTP; calls no tool'}>
          {(id) => (
            <select id={id} value={role} onChange={(event) => setRole(event.currentTarget.value)}>
              <option value="agent">agent</option>
              <option value="operator">operator</option>
            </select>
          )}
        </Field>
        <Field label="Valid for, in days" hint="Empty: until revoked.">{(id) => <input id={id} inputMode="numeric" value={days} onInput={(event) => setDays(event.currentTarget.value)} />}</Field>
        {make.error && <Failed error={make.error} />}
        {made && <Once value={made} />}
        <div class="row">
          <Button kind="primary" isSubmit disabled={!name.trim()} isBusy={make.isBusy} test="make-key">
            Make the key
          </Button>
        </div>
      </form>
    </article>
  );
}
