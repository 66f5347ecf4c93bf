// The frame around every page: navigation, the state of the connection in words, the palette, who is
// signed in.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { remove, request } from '../lib/api';
import { clock } from '../lib/format';
import { connection, retry, tellOver, waiting } from '../lib/live';
import { route } from '../lib/router';
import { leave, session } from '../lib/session';
import { useResource } from '../lib/resource';
import { Button, Icon, T } from './common';
import { isPaletteOpen, Palette } from './palette';

export const PAGES = [
  { id: 'home', title: 'Home' },
  { id: 'inbox', title: 'Inbox' },
  { id: 'tools', title: 'Tools' },
  { id: 'servers', title: 'Servers' },
  { id: 'inspector', title: 'Inspector' },
  { id: 'audit', title: 'Audit' },
  { id: 'policy', title: 'Policy' },
  { id: 'callers', title: 'Callers' },
  { id: 'numbers', title: 'Numbers' },
  { id: 'secrets', title: 'Secrets' },
  { id: 'connect', title: 'Connect' },
  { id: 'health', title: 'Health' },
] as const;

/** On a small screen the bar has room for these, the inbox first; the rest is behind "More". */
const FIRST = ['inbox', 'home', 'tools', 'audit'];

interface Counts {
  counts: { waiting: number; serversHeld: number };
  attention: { kind: string }[];
}

export function Frame({ children }: { children: ComponentChildren }) {
  const page = route.value.page;
  const home = useResource<Counts>('/home', ['inbox', 'servers', 'tools', 'settings']);
  const waits = waiting.value ?? home.data?.counts.waiting ?? 0;
  useEffect(() => {
    if (home.data) waiting.value = home.data.counts.waiting;
  }, [home.data]);
  const marks: Record<string, [number, string]> = {
    inbox: [waits, 'count'],
    servers: [home.data?.counts.serversHeld ?? 0, 'count quiet'],
    health: [home.data?.attention.filter((item) => item.kind === 'health').length ?? 0, 'count quiet'],
  };
  useEffect(() => {
    const title = PAGES.find((known) => known.id === page)?.title ?? 'Ringfence';
    document.title = `${waits ? `(${waits}) ` : ''}${title} · Ringfence`;
    document.querySelector('link[rel="icon"]')?.setAttribute('href', waits ? '/favicon-waiting.svg' : '/favicon.svg');
  }, [page, waits]);
  const [isMore, setMore] = useState(false);
  useEffect(() => setMore(false), [route.value]);
  const item = (id: string, title: string) => {
    const [count, kind] = marks[id] ?? [0, ''];
    return (
      <a class={`item ${FIRST.includes(id) ? '' : 'later'}`} href={`#/${id}`} aria-current={page === id ? 'page' : undefined} data-nav={id}>
        <Icon name={id} />
        {title}
        {count > 0 && (
          <span class={kind} data-test={`count-${id}`}>
            {count}
            <span class="hide"> waiting</span>
          </span>
        )}
      </a>
    );
  };
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById('main')?.focus())}>
        Skip to the page
      </a>
      <nav class="nav" aria-label="Pages">
        <a class="brand" href="#/home">
          <img src="/favicon.svg" alt="" /> Ringfence
        </a>
        {(matchMedia('(max-width: 600px)').matches ? [...PAGES].sort((a, b) => order(a.id) - order(b.id)) : PAGES).map(({ id, title }) => (
          <>
            {id === 'secrets' && <hr />}
            {item(id, title)}
          </>
        ))}
        <button type="button" class="item" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
          <Icon name="more" />
          More
        </button>
        {isMore && (
          <div class="more-sheet">
            {PAGES.filter(({ id }) => !FIRST.includes(id)).map(({ id, title }) => (
              <a href={`#/${id}`}>
                <Icon name={id} /> {title}
              </a>
            ))}
          </div>
        )}
      </nav>
      <div class="main">{children}</div>
      {isPaletteOpen.value && <Palette />}
    </div>
  );
}

const order = (id: string) => (FIRST.indexOf(id) + 1 || 99);

/** The head of a page and its body. */
export function Page({ title, actions, children, isWide }: { title: string; actions?: ComponentChildren; children: ComponentChildren; isWide?: boolean }) {
  return (
    <>
      <header class="top">
        <h1>{title}</h1>
        {actions}
        <div class="right">
          <State />
          <Button kind="quiet" class="small" onClick={() => (isPaletteOpen.value = true)} title="Command palette" test="palette">
            <Icon name="search" /> <span class="hide">Command palette</span> <span class="kbd hide-small">{/Mac/.test(navigator.platform) ? '⌘K' : 'Ctrl K'}</span>
          </Button>
          <Who />
        </div>
      </header>
      <Outage />
      <main class={`page ${isWide ? 'wide' : ''}`} id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

/** The state of the connection in words. */
function State() {
  const { state, sinceMs } = connection.value;
  const words = { live: 'live', connecting: 'reconnecting', offline: `offline since ${clock(sinceMs).slice(0, 5)}` }[state];
  return (
    <span class={`connection ${state}`} role="status" data-test="connection" title={state === 'live' ? 'this page follows what happens' : 'this page does not follow what happens'}>
      {words}
    </span>
  );
}

function Outage() {
  const { state, sinceMs } = connection.value;
  if (state !== 'offline') return null;
  return (
    <div class="banner offline" role="alert" data-test="outage">
      No connection since {clock(sinceMs)}. What you see may be old, and nothing can be answered.{' '}
      <button type="button" class="link" onClick={retry}>
        Try now
      </button>
    </div>
  );
}

function Who() {
  const who = session.value;
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      if (box.current?.open && !event.composedPath().includes(box.current)) box.current.open = false;
    };
    addEventListener('click', close);
    return () => removeEventListener('click', close);
  }, []);
  if (!who) return null;
  const out = async (isEverywhere: boolean) => {
    try {
      if (isEverywhere) await request('DELETE', '/sessions', {});
      else await remove('/session', {});
    } finally {
      tellOver();
      leave();
    }
  };
  return (
    <details class="who pop" ref={box}>
      <summary class="button quiet small" data-test="who">
        <Icon name="callers" /> <span class="hide-small"><T text={who.person.name} /></span>
        <span class="hide">account</span>
      </summary>
      <div class="pop-body stack">
        <p>
          Signed in as <strong><T text={who.person.name} /></strong>
          <br />
          <span class="dim">
            role {who.person.role}, until {clock(who.expiresAtMs).slice(0, 5)}
          </span>
        </p>
        <p class="dim">
          Ringfence {who.server.version}
          <br />
          <code><T text={who.server.home} /></code>
        </p>
        <div class="row">
          <Button class="small" onClick={() => void out(false)} test="sign-out">
            Sign out
          </Button>
          {who.person.role === 'owner' && (
            <Button class="small" kind="quiet" onClick={() => void out(true)} test="sign-out-all">
              Everywhere
            </Button>
          )}
        </div>
      </div>
    </details>
  );
}

/** A list with the detail of what is selected beside it; on a small screen one replaces the other. */
export function Split({ list, detail, back }: { list: ComponentChildren; detail: ComponentChildren | null; back: string }) {
  return (
    <div class={`split ${detail ? 'open' : 'alone'}`}>
      <div class="list">{list}</div>
      {detail && (
        <div class="detail" data-test="detail">
          <a class="button quiet small back" href={back}>
            <Icon name="back" /> Back to the list
          </a>
          {detail}
        </div>
      )}
    </div>
  );
}
