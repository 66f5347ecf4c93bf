// The address is the state: `#/audit/ID?caller=x`. Every page can be linked, opened in a new tab,
// reloaded, and left by the back button. The part after `#` never reaches the server.
import { computed, signal } from '@preact/signals';

export interface Route {
  page: string;
  /** What follows the page, decoded. */
  path: string[];
  query: URLSearchParams;
}

/** Reads the part of an address after `#`. Anything odd is the start page. */
export function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const parts = path.split('/').filter(Boolean).map(decode);
  return { page: parts[0] ?? 'home', path: parts.slice(1), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export type Query = Record<string, string | number | undefined | null>;

/** The address of a page. Values that are empty are left out. */
export function link(page: string, path: (string | number)[] = [], query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const text = search.toString();
  const parts = [page, ...path].map((part) => encodeURIComponent(part));
  return `#/${parts.join('/')}${text ? `?${text}` : ''}`;
}

// A link with a real path, as a terminal prints it, becomes the address of the page.
if (typeof location !== 'undefined' && location.pathname.length > 1) {
  history.replaceState(null, '', `/#${location.pathname}${location.search}`);
}

const hash = signal(typeof location === 'undefined' ? '' : location.hash);
export const route = computed(() => parse(hash.value));

if (typeof window !== 'undefined') {
  addEventListener('hashchange', () => (hash.value = location.hash));
}

export function go(address: string): void {
  location.hash = address;
  hash.value = location.hash;
}

/** Changes the address without a step for the back button: for filters while typing. */
export function replace(address: string): void {
  history.replaceState(null, '', address);
  hash.value = location.hash;
}

/** The present address with other filters. */
export function withQuery(changes: Query): string {
  const { page, path, query } = route.value;
  return link(page, path, { ...Object.fromEntries(query), ...changes });
}
