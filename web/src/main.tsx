// The start of the Studio: who is it, which page, and the stream of events.
import './app.css';
import { render, type ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { sweep } from './lib/draft';
import { install } from './lib/guard';
import { route } from './lib/router';
import { door } from './lib/session';
import { Button, Empty, Loading } from './ui/common';
import { Frame, Page } from './ui/frame';
import { ask, SignIn } from './ui/sign-in';

// A page is loaded when it is first opened.
const PAGES: Record<string, () => Promise<{ default: ComponentType }>> = {
  home: () => import('./pages/home'),
  inbox: () => import('./pages/inbox'),
  tools: () => import('./pages/tools'),
  servers: () => import('./pages/servers'),
  inspector: () => import('./pages/inspector'),
  audit: () => import('./pages/audit'),
  policy: () => import('./pages/policy'),
  callers: () => import('./pages/callers'),
  numbers: () => import('./pages/numbers'),
  secrets: () => import('./pages/secrets'),
  connect: () => import('./pages/connect'),
  health: () => import('./pages/health'),
};

const loaded = new Map<string, ComponentType>();

function Body() {
  const { page } = route.value;
  const [, setVersion] = useState(0);
  const [failed, setFailed] = useState<string>();
  useEffect(() => {
    const load = PAGES[page];
    if (!load || loaded.has(page)) return;
    setFailed(undefined);
    load().then(
      (module) => {
        loaded.set(page, module.default);
        setVersion((version) => version + 1);
      },
      () => setFailed(page),
    );
  }, [page]);
  const Shown = loaded.get(page);
  if (Shown) return <Shown />;
  if (!PAGES[page]) {
    return (
      <Page title="Not found">
        <Empty title="There is no such page">
          <p>
            The address ends in <code>{page}</code>. <a href="#/home">Go to the start page</a>.
          </p>
        </Empty>
      </Page>
    );
  }
  if (failed === page) {
    return (
      <Page title="Ringfence">
        <Empty title="This part of the page could not be loaded">
          <p>The server does not answer, or another version of it runs now. Load the page again.</p>
          <Button onClick={() => location.reload()}>Load again</Button>
        </Empty>
      </Page>
    );
  }
  return (
    <Page title="">
      <Loading what="the page" />
    </Page>
  );
}

function App() {
  const state = door.value;
  if (state === 'asking') return <div class="gate-page" role="status" aria-label="Loading" />;
  if (state === 'unreachable') {
    return (
      <div class="gate-page">
        <Empty title="The server does not answer">
          <p>Start it with <code>ringfence serve</code>, then try again.</p>
          <Button onClick={() => void ask()}>Try again</Button>
        </Empty>
      </div>
    );
  }
  if (state === 'out') {
    return (
      <main class="gate-page">
        <h1 class="hide">Ringfence: sign in</h1>
        <SignIn />
      </main>
    );
  }
  // After the end of a session the page stays mounted below the sign-in: nothing typed is lost.
  return (
    <>
      <div inert={state === 'expired'}>
        <Frame>
          <Body />
        </Frame>
      </div>
      {state === 'expired' && (
        <div class="veil" role="dialog" aria-modal="true" aria-label="Your session ended">
          <SignIn />
        </div>
      )}
    </>
  );
}

install();
sweep();
render(<App />, document.getElementById('app')!);
void ask();
