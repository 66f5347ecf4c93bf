// The way in: a one-time code that the server printed, or the organisation's own login.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, post, Refused } from '../lib/api';
import { retry, start } from '../lib/live';
import { useDeed } from '../lib/resource';
import { door, enter, signIn, type Session, type SignIn as Ways } from '../lib/session';
import { Button, Failed, T } from './common';

/** Asks the server whether this browser is signed in. */
export async function ask(): Promise<void> {
  try {
    enter(await get<Session>('/session'));
    start();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      const details = (error.body as { error?: { details?: { signIn?: Ways } } }).error?.details;
      if (details?.signIn) signIn.value = details.signIn;
      if (door.value !== 'expired') door.value = 'out';
    } else door.value = 'unreachable';
  }
}

export function SignIn() {
  const [code, setCode] = useState('');
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const enterWith = useDeed(async () => {
    enter(await post<Session>('/session', { code: code.trim() }));
    setCode('');
    start();
    retry();
  });
  const isExpired = door.value === 'expired';
  const { code: byCode, oauth } = signIn.value;
  return (
    <form
      class="sign-in"
      aria-label="Sign in"
      data-test="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        if (code.trim()) void enterWith.run();
      }}
    >
      <div class="brand">
        <img src="/favicon.svg" alt="" /> Ringfence
      </div>
      {isExpired ? (
        <p>
          <strong>Your session ended.</strong> Sign in again to go on. What you typed is still here. A new code comes from:
        </p>
      ) : (
        <p>Sign in with the code that the server printed when it started. For a new one, run:</p>
      )}
      <pre class="scroll">ringfence studio</pre>
      {byCode && (
        <div class="field">
          <label for="code">One-time code</label>
          <input id="code" ref={input} value={code} onInput={(event) => setCode(event.currentTarget.value)} autocomplete="one-time-code" autocapitalize="characters" spellcheck={false} maxLength={40} placeholder="XXXXX-XXXXX" data-test="code" />
        </div>
      )}
      {enterWith.error && <Failed error={enterWith.error} />}
      {byCode && (
        <Button kind="primary" isSubmit isBusy={enterWith.isBusy} test="enter">
          Sign in
        </Button>
      )}
      {oauth && (
        <a class="button" href={oauth.url} data-test="oauth">
          <T text={oauth.name} />
        </a>
      )}
    </form>
  );
}
