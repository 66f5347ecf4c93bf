// Who is signed in. The cookie is the server's business; the CSRF value stays in memory. When the
// session ends the page stays as it is, below the sign-in, so that nothing typed is lost.
import { computed, signal } from '@preact/signals';

export interface Session {
  person: { name: string; role: string };
  csrf: string;
  startedAtMs: number;
  expiresAtMs: number;
  idleSeconds: number;
  server: { version: string; home: string; url: string; mcpUrl: string };
  can: { approve: boolean; change: boolean };
}

export interface SignIn {
  code: boolean;
  /** The words of the button, and what went wrong by the word in the address. */
  oauth: { name: string; problems: Record<string, string> } | null;
}

export type Door = 'asking' | 'out' | 'in' | 'expired' | 'unreachable';

export const session = signal<Session | undefined>(undefined);
export const door = signal<Door>('asking');
export const signIn = signal<SignIn>({ code: true, oauth: null });

export const canApprove = computed(() => door.value === 'in' && session.value?.can.approve === true);
/** Also when the session ended: what the page shows then is inert, and a form must not lose what was typed. */
export const canChange = computed(() => (door.value === 'in' || door.value === 'expired') && session.value?.can.change === true);

/** The server no longer knows this session. */
export function expire(): void {
  if (door.value === 'in') door.value = 'expired';
}

export function enter(value: Session): void {
  session.value = value;
  door.value = 'in';
}

export function leave(): void {
  session.value = undefined;
  door.value = 'out';
}
