// The way in: a one-time code that the server printed, or the organisation's own login.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, post, Refused } from '../lib/api';
import { retry, start } from '../lib/live';
import { useDeed } from '../lib/resource';
import { replace } from '../lib/router';
import { door, enter, signIn, type Session, type SignIn as Ways } from '../lib/session';
import { Button, Failed, T } from './common';

/** Asks the server whether this browser is signed in. */
export async function ask(): Promise<void> {
  const wasExpired = door.value === 'expired';
  try {
    arrive(await get<Session>('/session'));
    start();
    if (wasExpired) retry();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      const details = (error.body as { error?: { details?: { signIn?: Ways } } }).error?.details;
      if (details?.signIn) signIn.value = details.signIn;
      if (door.value !== 'expired') door.value = 'out';
      // What was typed is below the sign-in, and stays there.
    } else if (!wasExpired) door.value = 'unreachable';
  }
}

/** Where one was when the session ended or the link was opened: an address of this page, and no secret. */
const PLACE = 'ringfence-return';
/** An account's login comes back to this address when it failed; the word after it says why. */
const FAILED = /^#\/sign-in\/([a-z]+)$/;

/** Signed in: back to where one was before a login elsewhere, and away from the word of one that failed. */
function arrive(value: Session): void {
  const place = sessionStorage.getItem(PLACE);
  sessionStorage.removeItem(PLACE);
  if (place?.startsWith('#/') && (location.hash === '' || FAILED.test(location.hash))) replace(place);
  else if (FAILED.test(location.hash)) replace('#/home');
  enter(value);
}

export function SignIn() {
  const [code, setCode] = useState('');
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const enterWith = useDeed(async () => {
    arrive(await post<Session>('/session', { code: code.trim() }));
    setCode('');
    start();
    retry();
  });
  const goElsewhere = useDeed(async () => {
    const { url } = await post<{ url: string }>('/session/oauth', {});
    // What was typed stays in this tab; when one comes back to it, it asks who is signed in.
    if (isExpired) window.open(url, '_blank', 'noopener');
    else {
      if (!FAILED.test(location.hash)) sessionStorage.setItem(PLACE, location.hash);
      location.assign(url);
    }
  });
  const isExpired = door.value === 'expired';
  useEffect(() => {
    if (!isExpired) return;
    const look = () => void ask();
    look();
    addEventListener('focus', look);
    return () => removeEventListener('focus', look);
  }, [isExpired]);
  const { code: byCode, oauth } = signIn.value;
  const problem = oauth?.problems[FAILED.exec(location.hash)?.[1] ?? ''];
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
      {isExpired && (
        <p>
          <strong>Your session ended.</strong> Sign in again to go on. What you typed is still here.
        </p>
      )}
      {oauth && (
        <>
          {problem && (
            <div class="note error" role="alert" data-test="login-problem">
              <T text={problem} />
            </div>
          )}
          {goElsewhere.error && <Failed error={goElsewhere.error} />}
          <Button kind="primary" isBusy={goElsewhere.isBusy} onClick={() => void goElsewhere.run()} test="oauth">
            <T text={oauth.name} />
          </Button>
          {isExpired && <p class="dim">It opens in another tab. Come back to this one afterwards.</p>}
          <hr />
        </>
      )}
      <p>
        {oauth ? 'If you run this server, a one-time code does it as well. For one' : isExpired ? 'For a new code' : 'Sign in with a one-time code. The server prints one when it starts in a terminal; for another'}, run:
      </p>
      <pre class="scroll">ringfence studio</pre>
      {byCode && (
        <div class="field">
          <label for="code">One-time code</label>
          <input id="code" ref={input} value={code} onInput={(event) => setCode(event.currentTarget.value)} autocomplete="one-time-code" autocapitalize="characters" spellcheck={false} maxLength={40} placeholder="XXXXX-XXXXX" data-test="code" />
        </div>
      )}
      {enterWith.error && <Failed error={enterWith.error} />}
      {byCode && (
        <Button kind={oauth ? undefined : 'primary'} isSubmit isBusy={enterWith.isBusy} test="enter">
          Sign in
        </Button>
      )}
    </form>
  );
}
