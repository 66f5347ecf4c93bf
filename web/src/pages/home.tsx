// What needs a person, what happens now, and how to begin.
import { useEffect, useState } from 'preact/hooks';
import { listen } from '../lib/live';
import { useResource } from '../lib/resource';
import { link } from '../lib/router';
import { count } from '../lib/text';
import type { AuditRow } from '../lib/types';
import { Failed, Icon, Loading, Risk, T, Time } from '../ui/common';
import { Page } from '../ui/frame';

interface Home {
  attention: { kind: string; severity: 'ask' | 'warn' | 'error'; message: string; link: string; count: number }[];
  steps: { id: string; title: string; done: boolean; link: string }[];
  perMinute: { atMs: number; calls: number; refused: number }[];
  recent: AuditRow[];
  counts: { waiting: number; tools: number; exposed: number; servers: number; serversHeld: number; callers: number };
}

const SHOWN = 10;
const STEP_WORDS: Record<string, string> = {
  connect: 'Give Claude, Cursor, VS Code or another client its own key.',
  call: 'From the client, or here in the Inspector.',
  write: 'Its risk moves as you type; publish what passed its test.',
};

/** A link of the server as an address of this page. */
const here = (to: string) => (to.startsWith('/') ? `#${to}` : link('home'));

export default function HomePage() {
  const home = useResource<Home>('/home', ['inbox', 'servers', 'tools', 'settings']);
  const [fresh, setFresh] = useState<AuditRow[]>([]);
  useEffect(() => listen('audit', (event) => event.item && setFresh((rows) => [event.item as AuditRow, ...rows].slice(0, SHOWN))), []);
  useEffect(() => setFresh([]), [home.data]);
  if (!home.data) return <Page title="Home">{home.error ? <Failed error={home.error} retry={home.reload} /> : <Loading what="the overview" />}</Page>;
  const { attention, steps, perMinute, counts } = home.data;
  const known = new Set<string>();
  const recent = [...fresh, ...home.data.recent].filter((row) => !known.has(row.id) && known.add(row.id)).slice(0, SHOWN);
  const isBegun = steps.every((step) => step.done);
  return (
    <Page title="Home">
      <div class="cards">
        <section class={`card ${isBegun ? 'full' : ''}`} aria-labelledby="needs" data-test="needs">
          <h2 id="needs">Needs you</h2>
          {attention.length ? (
            <ul class="attention">
              {attention.map((item) => (
                <li class={item.severity}>
                  <a href={here(item.link)}>
                    <Icon name={item.kind === 'question' ? 'inbox' : item.kind === 'server' ? 'servers' : item.kind === 'health' ? 'health' : 'warn'} />
                    <span class="words grow"><T text={item.message} /></span>
                    <Icon name="next" />
                  </a>
                </li>
              ))}
            </ul>
          ) : (
            <p class="dim" data-test="calm">
              <Icon name="ok" /> Nothing needs you. No call waits, no server is held, every wall is up.
            </p>
          )}
        </section>
        {!isBegun && (
          <section class="card" aria-labelledby="start" data-test="start">
            <h2 id="start">Start here</h2>
            <ol class="steps">
              {steps.map((step, index) => (
                <li class={step.done ? 'done' : ''}>
                  <span class="dot">{step.done ? <Icon name="ok" /> : index + 1}</span>
                  <div class="grow">
                    {step.done ? <span class="dim"><T text={step.title} />, done</span> : <a href={here(step.link)}><T text={step.title} /></a>}
                    {!step.done && <p class="hint">{STEP_WORDS[step.id]}</p>}
                  </div>
                </li>
              ))}
            </ol>
          </section>
        )}
        <section class="card full" aria-labelledby="now">
          <h2 id="now">Now</h2>
          <Spark minutes={perMinute} />
          <p class="dim">
            <a href={link('tools', [], { exposed: 'true' })}>{counts.exposed} of {count(counts.tools, 'tool')} exposed</a> · <a href={link('callers')}>{count(counts.callers, 'caller')}</a> · <a href={link('servers')}>{count(counts.servers, 'server')}</a>
          </p>
          {recent.length ? (
            <ul class="calls" data-test="recent">
              {recent.map((row) => (
                <Line key={row.kind + row.id} row={row} />
              ))}
            </ul>
          ) : (
            <p class="dim">No call yet. As soon as a client calls a tool, the last ten are here.</p>
          )}
        </section>
      </div>
    </Page>
  );
}

function Line({ row }: { row: AuditRow }) {
  if (row.kind === 'notice') {
    return (
      <li>
        <a href={link('audit', [row.id])}>
          <Time at={row.atMs} />
          <span class="tag">note</span>
          <span class="what"><T text={row.message} /></span>
          <span class="dim"><T text={row.by} /></span>
        </a>
      </li>
    );
  }
  return (
    <li>
      <a href={link('audit', [row.id])}>
        <Time at={row.atMs} />
        <Risk level={row.risk} />
        <span class="what">
          <strong><T text={row.tool} /></strong> <span class="dim">by <T text={row.caller} /></span> {row.status !== 'done' && row.message && <span class="dim">· <T text={row.message} /></span>}
        </span>
        <span class={`tag ${row.status}`}>{row.status}</span>
      </a>
    </li>
  );
}

/** Calls of the last hour, by minute; refused ones at the foot of each bar. */
function Spark({ minutes }: { minutes: Home['perMinute'] }) {
  const highest = Math.max(1, ...minutes.map((minute) => minute.calls));
  const calls = minutes.reduce((sum, minute) => sum + minute.calls, 0);
  const refused = minutes.reduce((sum, minute) => sum + minute.refused, 0);
  const width = 100 / Math.max(1, minutes.length);
  return (
    <figure>
      <figcaption class="dim">
        {count(calls, 'call')} in the last hour, {refused} refused{calls > 0 && ` · at most ${highest} a minute`}
      </figcaption>
      <svg class="spark" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`${calls} calls in the last hour, ${refused} refused`}>
        <rect x="0" y="39.5" width="100" height="0.5" class="all" />
        {minutes.map((minute, index) => (
          <>
            <rect class="all" x={index * width} y={40 - (minute.calls / highest) * 38} width={width * 0.7} height={(minute.calls / highest) * 38} />
            <rect class="no" x={index * width} y={40 - (minute.refused / highest) * 38} width={width * 0.7} height={(minute.refused / highest) * 38} />
          </>
        ))}
      </svg>
    </figure>
  );
}
