// One way to the server. The cookie travels by itself; a change also carries the CSRF header.
// Errors are values with the server's code and words: this file invents none for what the
// server said, only for what never reached it.
import { signal } from '@preact/signals';
import { expire, session } from './session';

const BASE = '/api/v1';
/** Longer than any run a page waits for. */
const TIMEOUT_MS = 130_000;

/** What the server, or the way to it, said instead of an answer. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fix: string | undefined,
    /** The whole body: a conflict carries the present state. */
    readonly body: unknown,
  ) {
    super(message);
  }
}

export const isReachable = signal(true);

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export async function request<T>(method: Method, path: string, body?: unknown, abort?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { accept: 'application/json' };
  if (method !== 'GET') {
    headers['content-type'] = 'application/json';
    headers['x-ringfence-csrf'] = session.value?.csrf ?? '';
  }
  const signals = [AbortSignal.timeout(TIMEOUT_MS), ...(abort ? [abort] : [])];
  let response: Response;
  try {
    response = await fetch(BASE + path, {
      method,
      headers,
      credentials: 'same-origin',
      redirect: 'error',
      cache: 'no-store',
      signal: AbortSignal.any(signals),
      ...(method === 'GET' ? {} : { body: JSON.stringify(body ?? {}) }),
    });
  } catch (cause) {
    if (abort?.aborted) throw cause;
    isReachable.value = false;
    throw new Refused(0, 'studio.unreachable', 'the server does not answer', 'start it again with `ringfence serve`; this page then continues', undefined);
  }
  isReachable.value = true;
  const text = await response.text();
  let value: unknown;
  try {
    value = text ? JSON.parse(text) : undefined;
  } catch {
    throw new Refused(response.status, 'studio.unreadable', 'the answer of the server is not JSON', undefined, text);
  }
  if (response.ok) return value as T;
  if (response.status === 401) expire();
  const error = (value as { error?: { code?: string; message?: string; fix?: string } } | undefined)?.error;
  throw new Refused(response.status, error?.code ?? `http.${response.status}`, error?.message ?? `the server answered ${response.status}`, error?.fix, value);
}

export const get = <T>(path: string, abort?: AbortSignal) => request<T>('GET', path, undefined, abort);
export const post = <T>(path: string, body?: unknown, abort?: AbortSignal) => request<T>('POST', path, body, abort);
export const put = <T>(path: string, body?: unknown) => request<T>('PUT', path, body);
export const remove = <T>(path: string, body?: unknown) => request<T>('DELETE', path, body);

/** A path of the API from parts that may hold anything. */
export function path(parts: (string | number)[], query: Record<string, string | number | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString();
  return `/${parts.map((part) => encodeURIComponent(part)).join('/')}${text ? `?${text}` : ''}`;
}
