// Every tool: what it may touch, whether it is published, who is offered it. The editor is a page of its own.
import { useState } from 'preact/hooks';
import { get, path, post, request } from '../lib/api';
import { count } from '../lib/text';
import { useDeed, useResource } from '../lib/resource';
import { go, link, replace, route, withQuery } from '../lib/router';
import { canChange } from '../lib/session';
import type { Finding, Tool, ToolRow } from '../lib/types';
import { Button, Copy, Empty, Facts, Failed, Field, Findings, Fold, Icon, Loading, Note, Pre, Reasons, Risk, save, Section, State, T, Time, useListKeys } from '../ui/common';
import { Page, Split } from '../ui/frame';
import { Rows } from '../ui/rows';
import { Exposure } from './tools-exposure';
import { ToolEditor } from './tools-editor';
import { Publish } from './tools-publish';

interface Tools {
  items: ToolRow[];
  aside: { file: string; name: string | null; findings: Finding[] }[];
  exposed: number;
  total: number;
  categories: string[];
  tags: string[];
}

const FILTERS = ['search', 'state', 'source', 'level', 'category', 'tag', 'exposed'] as const;

export default function ToolsPage() {
  const { path: parts, query } = route.value;
  if (parts[0] === 'new') return <ToolEditor key="new" name={undefined} />;
  if (parts[1] === 'edit') return <ToolEditor key={parts[0]} name={parts[0]} />;
  if (parts[1] === 'publish') return <Publish key={parts[0]} name={parts[0]!} />;
  return <List at={parts[0]} query={query} />;
}

function List({ at, query }: { at: string | undefined; query: URLSearchParams }) {
  const filter = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? undefined]));
  const tools = useResource<Tools>(path(['tools'], filter), ['tools', 'settings', 'servers']);
  const list = useListKeys();
  const drawer = query.get('drawer');
  const keep = { ...filter };
  const active = FILTERS.filter((name) => filter[name]);
  const items = tools.data?.items ?? [];
  return (
    <Page
      title="Tools"
      isWide
      actions={
        <>
          {canChange.value && (
            <a class="button small primary" href={link('tools', ['new'])} data-test="new-tool">
              <Icon name="plus" /> New
            </a>
          )}
          {canChange.value && (
            <a class="button small quiet hide-small" href={link('tools', [], { ...keep, drawer: 'import' })}>
              Import
            </a>
          )}
        </>
      }
    >
      <Split
        back={link('tools', [], keep)}
        list={
          <>
            <div class="list-head">
              <div class="row">
                <input type="search" class="grow" placeholder="Search tools" aria-label="Search tools" value={filter.search ?? ''} onInput={(event) => replace(withQuery({ search: event.currentTarget.value }))} data-test="search" />
                <a class="button small" href={link('tools', [], { ...keep, drawer: 'exposure' })} data-test="exposure">
                  {tools.data ? `${tools.data.exposed} of ${tools.data.total} exposed` : 'Exposure'}
                </a>
              </div>
              <div class="filters">
                <Pick name="state" at={filter.state} options={['ACTIVE', 'DRAFT', 'MISSING_REQUIREMENTS', 'TEST_FAILED']} />
                <Pick name="source" at={filter.source} options={['own', 'bundled', 'server']} />
                <Pick name="level" at={filter.level} options={['L0', 'L3', 'L4', 'L5']} />
                <Pick name="category" at={filter.category} options={tools.data?.categories ?? []} />
                <Pick name="exposed" at={filter.exposed} options={['true', 'false']} />
              </div>
            </div>
            <div class="list-body" ref={list}>
              {tools.error && !tools.data && <Failed error={tools.error} retry={tools.reload} />}
              {tools.isLoading && <Loading what="the tools" />}
              {tools.data?.aside.map((file) => (
                <div class="note error">
                  <p>
                    <strong><T text={file.name ?? file.file} /></strong> cannot be used
                  </p>
                  <Findings findings={file.findings} />
                </div>
              ))}
              {items.length > 0 && <Rows label="Tools" count={items.length} item={(index) => items[index]!} keyOf={(tool) => tool.name} version={items} current={at} row={(tool) => <Row tool={tool} isAt={tool.name === at} keep={keep} />} />}
              {tools.data && !tools.data.items.length && (
                <Empty title="No tool here">
                  {active.length ? (
                    <>
                      <p>No tool matches {active.map((name) => `${name} “${filter[name]}”`).join(', ')}.</p>
                      <p><a href={link('tools')}>Show all {count(tools.data.total, 'tool')}</a></p>
                    </>
                  ) : (
                    <p>
                      <a href={link('tools', ['new'])}>Write the first one</a>; it starts from a small tool that passes its own test.
                    </p>
                  )}
                </Empty>
              )}
            </div>
          </>
        }
        detail={drawer === 'exposure' ? <Exposure /> : drawer === 'import' ? <Import /> : at ? <Detail key={at} name={at} /> : null}
      />
    </Page>
  );
}

function Row({ tool, isAt, keep }: { tool: ToolRow; isAt: boolean; keep: Record<string, string | undefined> }) {
  return (
    <a class="entry" href={link('tools', [tool.name], keep)} aria-current={isAt ? 'true' : undefined} data-row data-test="tool" data-name={tool.name}>
      <Risk risk={tool.risk} />
      <span class="name"><T text={tool.name} /></span>
      <span class="side">
        {tool.state.toLowerCase() !== 'active' && <State of={tool.state} />}
        {tool.exposed ? <span class="tag good">exposed</span> : null}
      </span>
      <span class="sub"><T text={tool.description} /></span>
      <span class="sub-side dim">{tool.source === 'server' ? <T text={tool.server} /> : tool.source}</span>
    </a>
  );
}

function Pick({ name, at, options }: { name: string; at: string | undefined; options: string[] }) {
  return (
    <select aria-label={name} value={at ?? ''} onChange={(event) => go(withQuery({ [name]: event.currentTarget.value }))}>
      <option value="">any {name}</option>
      {options.map((option) => (
        <option value={option}>{name === 'exposed' ? (option === 'true' ? 'exposed' : 'not exposed') : name === 'state' ? option.toLowerCase().replaceAll('_', ' ') : option}</option>
      ))}
    </select>
  );
}

function Detail({ name }: { name: string }) {
  const tool = useResource<Tool>(path(['tools', name]), ['tools', 'settings', 'servers']);
  if (tool.isLoading) return <Loading what="the tool" />;
  if (!tool.data) return tool.error ? <Failed error={tool.error} retry={tool.reload} /> : null;
  return <Overview tool={tool.data} set={tool.set} />;
}

function Overview({ tool, set }: { tool: Tool; set: (tool: Tool) => void }) {
  const unpublish = useDeed(async () => set(await post<Tool>(path(['tools', tool.name, 'unpublish']), {})));
  const grant = useDeed(async (variable: string, isGranted: boolean) => set(await post<Tool>(path(['tools', tool.name, 'variables']), { name: variable, grant: isGranted })));
  const out = useDeed(async () => {
    const file = await get<{ document: string; fileName: string }>(path(['tools', 'export'], { name: tool.name }));
    save(file.fileName, file.document);
  });
  const code = codeOf(tool.document);
  return (
    <article data-test="tool-view">
      <div class="detail-head">
        <Risk risk={tool.risk} isLong />
        <h2><T text={tool.name} /></h2>
        <State of={tool.state} test="state" />
        <div class="row">
          {tool.canEdit && canChange.value && (
            <a class="button small" href={link('tools', [tool.name, 'edit'])} data-test="edit">
              Edit
            </a>
          )}
          {tool.canEdit && canChange.value && !tool.published?.same && (
            <a class="button small primary" href={link('tools', [tool.name, 'publish'])} data-test="publish">
              Publish
            </a>
          )}
          <a class="button small" href={link('inspector', [tool.name])} data-test="inspect">
            Call it
          </a>
        </div>
      </div>
      {tool.stateWhy && (
        <div class="section">
          <Note kind="warn"><T text={tool.stateWhy} /></Note>
        </div>
      )}
      {tool.findings.length > 0 && (
        <Section title="Findings">
          <Findings findings={tool.findings} />
        </Section>
      )}
      <Section title="What the model sees">
        <SeenBox seen={tool.seen} />
      </Section>
      <Section title="Risk">
        <Reasons risk={tool.risk} />
      </Section>
      <Section title="Facts">
        <Facts
          rows={[
            ['source', tool.source === 'server' ? <a href={link('servers', [tool.server ?? ''])}>server <T text={tool.server} /></a> : tool.source],
            ['exposed', <>{tool.exposed ? 'yes' : 'no'}: <T text={tool.exposure} /> <a href={link('tools', [], { drawer: 'exposure' })}>change</a></>],
            ['approval', tool.approval.toLowerCase().replaceAll('_', ' ')],
            ['last test', tool.lastPass ? <>{tool.lastPass.ok ? 'passed' : <span class="bad">failed: <T text={tool.lastPass.error} /></span>} <Time at={tool.lastPass.atMs} /></> : <span class="dim">none</span>],
            ['published', tool.published ? (tool.published.same ? 'yes, as it is here' : 'yes, another text') : <span class="dim">no</span>],
            ['digest', <code>{tool.digest}</code>],
            ...(tool.file ? [['file', <code><T text={tool.file} /></code>] as [string, preact.ComponentChildren]] : []),
            ['calls', <a href={link('audit', [], { tool: tool.name })}>in the audit log</a>],
          ]}
        />
      </Section>
      {tool.variables.length > 0 && (
        <Section title="Variables">
          {grant.error && <Failed error={grant.error} />}
          <ul class="plain">
            {tool.variables.map((variable) => (
              <li class="row">
                <code><T text={variable.name} /></code> <span class={`tag ${variable.set ? 'good' : 'warn'}`}>{variable.set ? 'set' : 'not set'}</span>
                <span class={`tag ${variable.granted ? 'good' : 'warn'}`}>{variable.granted ? 'granted' : 'not granted'}</span>
                <span class="dim grow"><T text={variable.words} /></span>
                {!variable.set && <a href={link('secrets', [], { name: variable.name })}>Set it</a>}
                {canChange.value && (
                  <Button class="small" isBusy={grant.isBusy} onClick={() => void grant.run(variable.name, !variable.granted)}>
                    {variable.granted ? 'Withdraw' : 'Grant'}
                  </Button>
                )}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {code && (
        <Section title="Code" aside={<Copy text={code} />}>
          <Pre text={code} label="code" isTall />
        </Section>
      )}
      {tool.document && (
        <Fold title="Document">
          <Pre text={tool.document} label="document" isTall />
        </Fold>
      )}
      <Fold title="Input schema">
        <Pre text={JSON.stringify(tool.inputSchema, null, 2)} label="input schema" isTall />
      </Fold>
      {unpublish.error && <Failed error={unpublish.error} />}
      {out.error && <Failed error={out.error} />}
      <div class="row section">
        {tool.source !== 'server' && (
          <Button class="small" isBusy={out.isBusy} onClick={() => void out.run()}>
            Export
          </Button>
        )}
        {canChange.value && tool.source !== 'server' && <CopyAsNew tool={tool} />}
        {canChange.value && tool.own && tool.published && (
          <Button class="small" kind="quiet" isBusy={unpublish.isBusy} onClick={() => void unpublish.run()}>
            Unpublish
          </Button>
        )}
        {canChange.value && tool.own && <Delete tool={tool} />}
      </div>
    </article>
  );
}

function codeOf(document: string | null): string | undefined {
  try {
    const code = (JSON.parse(document ?? 'null') as { code?: unknown } | null)?.code;
    return typeof code === 'string' ? code : undefined;
  } catch {
    return undefined;
  }
}

export function SeenBox({ seen }: { seen: { name: string; description: string; inputSchema: unknown } }) {
  const schema = seen.inputSchema as { properties?: Record<string, { type?: unknown; description?: string }>; required?: string[] } | null;
  const properties = Object.entries(schema?.properties ?? {});
  return (
    <div class="seen">
      <strong class="mono"><T text={seen.name} /></strong>
      <p><T text={seen.description} lines="many" /></p>
      {properties.length > 0 && (
        <ul class="plain">
          {properties.map(([name, property]) => (
            <li>
              <code><T text={name} /></code> <span class="dim">{typeof property.type === 'string' ? property.type : 'any'}{schema?.required?.includes(name) ? ', required' : ''}</span>{' '}
              <T text={property.description} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function CopyAsNew({ tool }: { tool: Tool }) {
  const [name, setName] = useState('');
  const [isOpen, setOpen] = useState(false);
  const copy = useDeed(async () => {
    await post<Tool>(path(['tools', tool.name, 'copy']), { name });
    go(link('tools', [name, 'edit']));
  });
  if (!isOpen) {
    return (
      <Button class="small" onClick={() => setOpen(true)} test="copy-as-new">
        Copy as new
      </Button>
    );
  }
  return (
    <form class="row" onSubmit={(event) => (event.preventDefault(), void copy.run())}>
      <input aria-label="Name of the copy" placeholder="name of the copy" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <Button class="small" isSubmit isBusy={copy.isBusy} disabled={!name}>
        Copy
      </Button>
      {copy.error && <Failed error={copy.error} />}
    </form>
  );
}

function Delete({ tool }: { tool: Tool }) {
  const [isSure, setSure] = useState(false);
  const remove = useDeed(async () => {
    await request('DELETE', path(['tools', tool.name]), {});
    go(link('tools'));
  });
  if (!isSure) {
    return (
      <Button class="small" kind="quiet" onClick={() => setSure(true)}>
        Delete
      </Button>
    );
  }
  return (
    <span class="row">
      <Button class="small" kind="danger" isBusy={remove.isBusy} onClick={() => void remove.run()}>
        Delete <T text={tool.name} />
      </Button>
      <span class="dim">It moves to the trash of the home.</span>
      <Button class="small" kind="quiet" onClick={() => setSure(false)}>
        Keep it
      </Button>
      {remove.error && <Failed error={remove.error} />}
    </span>
  );
}

interface Imported {
  items: { name: string | null; was: string | null; ok: boolean; why: string | null; findings: Finding[]; variables: string[] }[];
}

function Import() {
  const [text, setText] = useState('');
  const [isReplacing, setReplacing] = useState(false);
  const [done, setDone] = useState<Imported>();
  const take = useDeed(async () => setDone(await post<Imported>('/tools/import', { document: text, replace: isReplacing, prefix: null, renames: {} })));
  return (
    <article>
      <div class="detail-head">
        <h2>Import tools</h2>
      </div>
      <div class="form">
        <Field label="Documents" hint="One document or a list of them. What comes in is a draft: nothing runs until you test and publish it.">
          {(id) => <textarea id={id} class="mono" rows={12} value={text} onInput={(event) => setText(event.currentTarget.value)} spellcheck={false} />}
        </Field>
        <input type="file" accept="application/json,.json" aria-label="File with documents" onChange={(event) => void event.currentTarget.files?.[0]?.text().then(setText)} />
        <label class="check">
          <input type="checkbox" checked={isReplacing} onChange={(event) => setReplacing(event.currentTarget.checked)} /> Replace tools of the same name
        </label>
        <div class="row">
          <Button kind="primary" disabled={!text.trim()} isBusy={take.isBusy} onClick={() => void take.run()}>
            Import
          </Button>
        </div>
        {take.error && <Failed error={take.error} />}
        {done?.items.map((item) => (
          <Note kind={item.ok ? 'good' : 'error'}>
            <p>
              {item.ok ? <a href={link('tools', [item.name ?? ''])}><T text={item.name} /></a> : <strong><T text={item.was} /></strong>} {item.ok ? 'imported as a draft' : <T text={item.why} />}
            </p>
            {item.findings.length > 0 && <Findings findings={item.findings} />}
          </Note>
        ))}
      </div>
    </article>
  );
}
