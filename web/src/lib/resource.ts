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

export function useResource<T>(path: string | undefined, kinds: Kind[] = []): Resource<T> {
  const [state, setState] = useState<{ path: string | undefined; data?: T; error?: Refused }>({ path });
  const [wish, setWish] = useState(0);
  const running = useRef<AbortController | undefined>(undefined);
  const version = kinds.reduce((sum, kind) => sum + changes[kind].value, gaps.value);
  const isIn = door.value === 'in';
  const first = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (!path || !isIn) return;
    const isFirst = first.current !== path;
    first.current = path;
    const abort = new AbortController();
    const load = async () => {
      running.current?.abort();
      running.current = abort;
      try {
        const data = await get<T>(path, abort.signal);
        if (!abort.signal.aborted) setState({ path, data });
      } catch (error) {
        if (abort.signal.aborted) return;
        const refused = error instanceof Refused ? error : new Refused(0, 'studio.page', String(error), undefined, undefined);
        setState((old) => (old.path === path && old.data !== undefined ? { path, data: old.data, error: refused } : { path, error: refused }));
      }
    };
    const timer = setTimeout(load, isFirst ? 0 : SETTLE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, version, wish, isIn]);
  const isSame = state.path === path;
  return {
    data: isSame ? state.data : undefined,
    error: isSame ? state.error : undefined,
    isLoading: path !== undefined && (!isSame || (state.data === undefined && state.error === undefined)),
    reload: () => setWish((value) => value + 1),
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
