// Each client's snippet, and the command that writes it.
import { useResource } from '../lib/resource';
import { link, replace, route, withQuery } from '../lib/router';
import { Copy, Failed, Loading, Note, Pre, Section, T, Tabs } from '../ui/common';
import { Page } from '../ui/frame';

interface Connect {
  url: string;
  clients: { id: string; name: string; file: string | null; section: string | null; kind: 'json' | 'command'; snippet: string | null; command: string }[];
}

export default function ConnectPage() {
  const connect = useResource<Connect>('/connect', ['settings']);
  const facts = connect.data;
  if (!facts) return <Page title="Connect">{connect.error ? <Failed error={connect.error} retry={connect.reload} /> : <Loading what="the clients" />}</Page>;
  const at = facts.clients.find((client) => client.id === route.value.query.get('client')) ?? facts.clients[0];
  return (
    <Page title="Connect">
      <div class="stack narrow" data-test="connect">
        <Section title="Address for MCP clients" aside={<Copy text={facts.url} />}>
          <Pre text={facts.url} label="address" />
        </Section>
        <Tabs label="Client" at={at?.id ?? ''} onPick={(id) => replace(withQuery({ client: id }))} tabs={facts.clients.map((client) => ({ id: client.id, label: client.name }))} />
        {at && (
          <>
            <Section title="The short way" aside={<Copy text={at.command} />}>
              <Pre text={at.command} label="command" />
              <p class="hint">Makes a caller and a key for this client, asks how far it may answer questions itself, and writes its settings.</p>
            </Section>
            {at.snippet !== null && (
              <Section title={at.file ? 'By hand' : 'By command'} aside={<Copy text={at.snippet} />}>
                {at.file && <p class="dim">in <code><T text={at.file} /></code>{at.section && <>, under <code><T text={at.section} /></code></>}</p>}
                <Pre text={at.snippet} label="snippet" isTall />
              </Section>
            )}
            <Note>
              <p>A key for the snippet comes from <a href={link('callers', [], { new: 1 })}>Callers</a>. It is shown once.</p>
            </Note>
          </>
        )}
      </div>
    </Page>
  );
}
