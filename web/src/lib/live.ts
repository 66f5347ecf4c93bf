// What happens on the server, as it happens. One stream for all tabs of a browser: a lock elects the
// tab that holds it, a channel carries the events to the others. Events only say what changed; pages
// then ask again. After a gap everything is asked again, and a page without a stream says so.
import { signal, type Signal } from '@preact/signals';
import { get, Refused } from './api';
import { door, enter, expire, type Session } from './session';

export const KINDS = ['inbox', 'audit', 'tools', 'settings', 'servers', 'callers'] as const;
export type Kind = (typeof KINDS)[number];

export type Connection = { state: 'live' | 'connecting' | 'offline'; sinceMs: number };

/** The server pings every 15 seconds. */
const SILENCE_MAX_MS = 40_000;
const RETRY_MS = [300, 1000, 2000, 4000, 8000];
/** A connection that is gone for so long is called offline. */
const OFFLINE_AFTER_MS = 5000;

export const connection = signal<Connection>({ state: 'connecting', sinceMs: Date.now() });
/** Counts events by kind; a page that shows a kind depends on its counter. */
export const changes = Object.fromEntries(KINDS.map((kind) => [kind, signal(0)])) as Record<Kind, Signal<number>>;
/** Counts gaps: everything may have changed. */
export const gaps = signal(0);
/** Questions that wait. */
export const waiting = signal<number | undefined>(undefined);

export interface LiveEvent {
  seq: number;
  boot: string;
  [name: string]: unknown;
}
type Listener = (event: LiveEvent) => void;
const listeners = new Map<Kind, Set<Listener>>();

/** Calls back for each event of a kind, with its data. */
export function listen(kind: Kind, listener: Listener): () => void {
  const all = listeners.get(kind) ?? new Set();
  listeners.set(kind, all.add(listener));
  return () => all.delete(listener);
}

type Message = { type: 'event'; kind: string; data: LiveEvent } | { type: 'state'; connection: Connection } | { type: 'who' } | { type: 'over' };

let last: { seq: number; boot: string } | undefined;
let heardAt = Date.now();
let isLeader = false;
let channel: BroadcastChannel | undefined;
let source: EventSource | undefined;
let tries = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Takes one event, from the stream or from the tab that holds it. */
export function take(kind: string, data: LiveEvent): void {
  heardAt = Date.now();
  const isGap = last !== undefined && (last.boot !== data.boot || (kind === 'hello' ? data.seq !== last.seq : data.seq > last.seq + 1));
  const isOld = last !== undefined && last.boot === data.boot && data.seq <= last.seq;
  last = { seq: isOld ? last!.seq : data.seq, boot: data.boot };
  if (isGap || kind === 'reset') gaps.value++;
  if (kind === 'session') {
    expire();
    return;
  }
  if (kind === 'inbox' && typeof data.waiting === 'number') waiting.value = data.waiting;
  if ((KINDS as readonly string[]).includes(kind) && !isOld) {
    changes[kind as Kind].value++;
    for (const listener of listeners.get(kind as Kind) ?? []) listener(data);
  }
}

function become(state: Connection['state'], sinceMs?: number): void {
  const before = connection.value;
  // Every try that fails is the same outage.
  if (before.state === state || (before.state === 'offline' && state === 'connecting')) return;
  // Reconnecting and offline are one outage.
  const since = sinceMs ?? (state === 'live' || before.state === 'live' ? Date.now() : before.sinceMs);
  connection.value = { state, sinceMs: since };
  if (isLeader) say({ type: 'state', connection: connection.value });
}

function say(message: Message): void {
  channel?.postMessage(message);
}

/** Starts the stream, once. */
export function start(): void {
  if (channel) {
    if (isLeader && !source) connect();
    return;
  }
  channel = new BroadcastChannel('ringfence-live');
  channel.onmessage = (event: MessageEvent<Message>) => hear(event.data);
  say({ type: 'who' });
  void navigator.locks.request('ringfence-live', () => {
    isLeader = true;
    connect();
    // The lock is held until the tab ends.
    return new Promise<never>(() => {});
  });
  setInterval(watch, 1000);
  addEventListener('online', retry);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && connection.value.state !== 'live') retry();
  });
}

/** Tries at once instead of waiting. */
export function retry(): void {
  tries = 0;
  if (isLeader && !source) connect();
  else if (isLeader && connection.value.state !== 'live') {
    drop();
    connect();
  }
}

/** The tabs share one session: what ends it here ends it there. */
export function tellOver(): void {
  say({ type: 'over' });
}

function hear(message: Message): void {
  if (message.type === 'over') {
    expire();
    return;
  }
  if (isLeader) {
    if (message.type === 'who') say({ type: 'state', connection: connection.value });
    return;
  }
  if (message.type === 'event') {
    take(message.kind, message.data);
    become('live');
  } else if (message.type === 'state') {
    heardAt = Date.now();
    if (message.connection.state === 'live' && connection.value.state !== 'live') gaps.value++;
    become(message.connection.state, message.connection.sinceMs);
  }
}

function connect(): void {
  clearTimeout(timer);
  if (source || door.value !== 'in') return;
  const stream = new EventSource('/api/v1/events');
  source = stream;
  for (const kind of ['hello', 'reset', 'ping', 'session', ...KINDS]) {
    stream.addEventListener(kind, (event) => {
      let data: LiveEvent;
      try {
        data = JSON.parse((event as MessageEvent<string>).data) as LiveEvent;
      } catch {
        return;
      }
      tries = 0;
      take(kind, data);
      say({ type: 'event', kind, data });
      become('live');
    });
  }
  stream.onerror = () => {
    drop();
    become('connecting');
    void look();
  };
}

function drop(): void {
  source?.close();
  source = undefined;
}

/** Is it the session, or the way? */
async function look(): Promise<void> {
  try {
    enter(await get<Session>('/session'));
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return;
  }
  const wait = RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]!;
  clearTimeout(timer);
  timer = setTimeout(connect, wait);
}

function watch(): void {
  const { state, sinceMs } = connection.value;
  const time = Date.now();
  if (state === 'live' && time - heardAt > SILENCE_MAX_MS) {
    become('connecting');
    if (isLeader) {
      drop();
      void look();
    } else say({ type: 'who' });
  } else if (state === 'connecting' && time - sinceMs > OFFLINE_AFTER_MS) become('offline', sinceMs);
}
