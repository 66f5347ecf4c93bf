// Unsaved text, kept in this browser so that a reload or the end of a session loses nothing. Only
// what the person typed; never a secret, never an answer of the server. Kept for the person who
// typed it, and for a week.
import { signal } from '@preact/signals';
import { session } from './session';

const PREFIX = 'ringfence.draft.';
const KEPT_MS = 7 * 24 * 3600 * 1000;
const CHARS_MAX = 1_500_000;

interface Draft {
  text: string;
  /** What the text was an edit of, so that a change below it is noticed. */
  base: string;
  time: number;
}

/** Changes whenever a draft was kept or dropped. */
export const drafts = signal(0);

const key = (name: string) => `${PREFIX}${session.value?.person.name ?? ''}.${name}`;

export function keep(name: string, text: string, base: string): boolean {
  if (text.length > CHARS_MAX) return false;
  try {
    localStorage.setItem(key(name), JSON.stringify({ text, base, time: Date.now() } satisfies Draft));
    drafts.value++;
    return true;
  } catch {
    return false;
  }
}

export function kept(name: string): Draft | undefined {
  try {
    const draft = JSON.parse(localStorage.getItem(key(name)) ?? 'null') as Draft | null;
    if (!draft || typeof draft.text !== 'string' || Date.now() - draft.time > KEPT_MS) return undefined;
    return draft;
  } catch {
    return undefined;
  }
}

export function drop(name: string): void {
  try {
    localStorage.removeItem(key(name));
  } catch {
    // Without storage there is nothing to drop.
  }
  drafts.value++;
}

/** Removes what is too old; called once when the page starts. */
export function sweep(): void {
  try {
    for (const name of Object.keys(localStorage)) {
      if (!name.startsWith(PREFIX)) continue;
      const time = (JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Draft>).time ?? 0;
      if (Date.now() - time > KEPT_MS) localStorage.removeItem(name);
    }
  } catch {
    // A browser without storage keeps no drafts.
  }
}
