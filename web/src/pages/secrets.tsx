// Secrets by name: set or missing, and who uses them. A value goes in and never comes back.
import { useState } from 'preact/hooks';
import { path, put, request } from '../lib/api';
import { useDeed, useResource } from '../lib/resource';
import { link, route } from '../lib/router';
import { canChange } from '../lib/session';
import { Button, Empty, Failed, Field, Loading, Note, T } from '../ui/common';
import { Page } from '../ui/frame';

interface Secret {
  name: string;
  set: boolean;
  inFile: boolean;
  usedBy: { kind: string; name: string; granted: boolean }[];
}
interface Secrets {
  items: Secret[];
  file: string;
  writable: boolean;
}

export default function SecretsPage() {
  const secrets = useResource<Secrets>('/secrets', ['settings', 'tools', 'servers']);
  const [at, setAt] = useState<string | undefined>(route.value.query.get('name') ?? undefined);
  const [sure, setSure] = useState<string>();
  const drop = useDeed(async (name: string) => {
    await request('DELETE', path(['secrets', name]), {});
    setSure(undefined);
    secrets.reload();
  });
  const facts = secrets.data;
  const mayWrite = canChange.value && facts?.writable === true;
  return (
    <Page
      title="Secrets"
      actions={
        mayWrite && (
          <Button class="small" kind="primary" onClick={() => setAt('')} test="new-secret">
            Set a secret
          </Button>
        )
      }
    >
      {!facts && (secrets.error ? <Failed error={secrets.error} retry={secrets.reload} /> : <Loading what="the names" />)}
      {facts && (
        <p class="dim section">
          Names only: a value is written to <code><T text={facts.file} /></code> and never shown again, here or anywhere.
        </p>
      )}
      {at !== undefined && mayWrite && <SetSecret key={at} name={at} done={() => (setAt(undefined), secrets.reload())} cancel={() => setAt(undefined)} />}
      {drop.error && <Failed error={drop.error} />}
      {facts && !facts.items.length && (
        <Empty title="No tool asks for a secret">
          <p>A document that says <code>{'${NAME}'}</code> in its variables makes NAME appear here, set or missing.</p>
        </Empty>
      )}
      {facts && facts.items.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="secrets">
          <table data-test="secrets">
            <thead>
              <tr>
                <th>Name</th>
                <th>State</th>
                <th>Used by</th>
                <th>
                  <span class="hide">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {facts.items.map((secret) => (
                <tr>
                  <td class="name"><code><T text={secret.name} /></code></td>
                  <td>{secret.set ? <span class="tag good">set</span> : <span class="tag warn">missing</span>} {secret.set && !secret.inFile && <span class="dim">from the environment</span>}</td>
                  <td>
                    {secret.usedBy.map((user) => (
                      <span class="nowrap">
                        <a href={link(user.kind === 'server' ? 'servers' : 'tools', [user.name])}><T text={user.name} /></a> {!user.granted && <span class="dim">(not granted)</span>}{' '}
                      </span>
                    ))}
                    {!secret.usedBy.length && <span class="dim">nothing</span>}
                  </td>
                  <td>
                    {mayWrite && (
                      <div class="row end">
                        <Button class="small" onClick={() => setAt(secret.name)}>
                          {secret.set ? 'Replace' : 'Set'}
                        </Button>
                        {secret.set && secret.inFile && (sure === secret.name ? <Button class="small" kind="danger" isBusy={drop.isBusy} onClick={() => void drop.run(secret.name)}>Remove <T text={secret.name} /></Button> : <Button class="small" kind="quiet" onClick={() => setSure(secret.name)}>Remove</Button>)}
                      </div>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}

function SetSecret({ name, done, cancel }: { name: string; done: () => void; cancel: () => void }) {
  const [as, setAs] = useState(name);
  const [value, setValue] = useState('');
  const set = useDeed(async () => {
    await put(path(['secrets', as]), { value });
    setValue('');
    done();
  });
  return (
    <form class="card section form" onSubmit={(event) => (event.preventDefault(), void set.run())} data-test="set-secret" autocomplete="off">
      <div class="form two">
        <Field label="Name">{(id) => <input id={id} class="mono" value={as} onInput={(event) => setAs(event.currentTarget.value)} spellcheck={false} data-test="secret-name" />}</Field>
        <Field label="Value" hint="Not kept in this page, not shown again.">{(id) => <input id={id} type="password" class="mono" value={value} onInput={(event) => setValue(event.currentTarget.value)} autocomplete="new-password" data-test="secret-value" />}</Field>
      </div>
      {set.error && <Failed error={set.error} />}
      <Note>It takes effect at the next call of a tool that was granted it.</Note>
      <div class="row">
        <Button kind="primary" isSubmit disabled={!as || !value} isBusy={set.isBusy} test="save-secret">
          Save
        </Button>
        <Button kind="quiet" onClick={cancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
