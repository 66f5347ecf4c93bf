// Something of the server that a page shows: asked for when the page opens, asked again when an event
// says that it changed and after every gap. The old answer stays on the screen until the new one is there.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, Refused } from './api';
import { changes, gaps, type Kind } from './live';
import { door } from './session';

/** Events in a burst cause one request. */
const SETTLE_MS = 60;

export interface Resource<T> {
  data: T | undefined;
  error: Refused | undefined;
  isLoading: boolean;
  reload: () => void;
  set: (data: T) => void;
}

/** One request at a time. What is wished while one runs becomes one more after it, so that a stream of events
 *  neither starves the page nor floods the server. */
class Loader {
  private readonly abort = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isRunning = false;
  private isWished = false;

  constructor(private readonly work: (signal: AbortSignal) => Promise<void>) {}

  ask(afterMs: number): void {
    if (this.isRunning) this.isWished = true;
    else this.timer ??= setTimeout(() => void this.run(), afterMs);
  }

  private async run(): Promise<void> {
    this.timer = undefined;
    this.isRunning = true;
    await this.work(this.abort.signal);
    this.isRunning = false;
    if (!this.isWished || this.abort.signal.aborted) return;
    this.isWished = false;
    this.ask(SETTLE_MS);
  }

  end(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }
}

export function useResource<T>(path: string | undefined, kinds: Kind[] = []): Resource<T> {
  const [state, setState] = useState<{ path: string | undefined; data?: T; error?: Refused }>({ path });
  const loader = useRef<Loader | undefined>(undefined);
  const version = kinds.reduce((sum, kind) => sum + changes[kind].value, gaps.value);
  const isIn = door.value === 'in';
  useEffect(() => {
    if (!path || !isIn) return;
    const own = new Loader(async (signal) => {
      try {
        const data = await get<T>(path, signal);
        if (!signal.aborted) setState({ path, data });
      } catch (error) {
        if (signal.aborted) return;
        const refused = error instanceof Refused ? error : new Refused(0, 'studio.page', String(error), undefined, undefined);
        setState((old) => (old.path === path && old.data !== undefined ? { path, data: old.data, error: refused } : { path, error: refused }));
      }
    });
    loader.current = own;
    own.ask(0);
    return () => own.end();
  }, [path, isIn]);
  useEffect(() => {
    loader.current?.ask(SETTLE_MS);
  }, [version]);
  const isSame = state.path === path;
  return {
    data: isSame ? state.data : undefined,
    error: isSame ? state.error : undefined,
    isLoading: path !== undefined && (!isSame || (state.data === undefined && state.error === undefined)),
    reload: () => loader.current?.ask(0),
    set: (data) => setState({ path, data }),
  };
}

/** Something the person does: one at a time, with its error beside it. */
export interface Deed<A extends unknown[]> {
  run: (...args: A) => Promise<void>;
  isBusy: boolean;
  error: Refused | undefined;
  clear: () => void;
}

export function useDeed<A extends unknown[]>(deed: (...args: A) => Promise<void>): Deed<A> {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Refused>();
  const busy = useRef(false);
  return {
    isBusy,
    error,
    clear: () => setError(undefined),
    run: async (...args) => {
      if (busy.current) return;
      busy.current = true;
      setBusy(true);
      setError(undefined);
      try {
        await deed(...args);
      } catch (cause) {
        setError(cause instanceof Refused ? cause : new Refused(0, 'studio.page', String(cause), undefined, undefined));
      } finally {
        busy.current = false;
        setBusy(false);
      }
    },
  };
}
