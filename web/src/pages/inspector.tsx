// Call any tool through the real path, see what would happen for another caller, or try a script.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, path, post, Refused } from '../lib/api';
import { drop, keep, kept } from '../lib/draft';
import { duration, size } from '../lib/format';
import { useDeed, useResource } from '../lib/resource';
import { initial } from '../lib/schema';
import { go, link, replace, route, withQuery } from '../lib/router';
import { canChange } from '../lib/session';
import { keepTestValues } from '../lib/test-values';
import type { CallRow, ConsoleLine, Gate, Risk as RiskFacts, Schema, Tool, ToolRow } from '../lib/types';
import { beyondGates, Button, Copy, Empty, Failed, Fold, Gates, Icon, Loading, Note, Pre, Risk, Section, State, T, Tabs } from '../ui/common';
import { Editor } from '../ui/editor';
import { Page } from '../ui/frame';
import { SchemaForm } from '../ui/schema-form';

export default function InspectorPage() {
  const { path: parts, query } = route.value;
  const mode = query.get('mode') === 'script' ? 'script' : 'tool';
  return (
    <Page title="Inspector">
      <div class="stack">
        <Tabs
          label="What to run"
          at={mode}
          onPick={(id) => go(link('inspector', [], { mode: id === 'script' ? 'script' : undefined }))}
          tabs={[
            { id: 'tool', label: 'One tool' },
            { id: 'script', label: 'Script' },
          ]}
        />
        {mode === 'script' ? <Scratchpad /> : <OneTool name={parts[0]} />}
      </div>
    </Page>
  );
}

function OneTool({ name }: { name: string | undefined }) {
  const tools = useResource<{ items: ToolRow[] }>('/tools', ['tools']);
  const items = tools.data?.items ?? [];
  return (
    <div class="stack">
      <div class="row">
        <label for="pick-tool" class="dim">
          Tool
        </label>
        <input id="pick-tool" class="mono grow" list="all-tools" key={name ?? ''} defaultValue={name ?? ''} placeholder="name of a tool" spellcheck={false} onChange={(event) => event.currentTarget.value && go(link('inspector', [event.currentTarget.value]))} data-test="pick-tool" />
        <datalist id="all-tools">
          {items.map((tool) => (
            <option value={tool.name}>{tool.risk.level}</option>
          ))}
        </datalist>
      </div>
      {name ? (
        <Runner key={name} name={name} />
      ) : (
        <Empty title="Pick a tool">
          <p>Its form comes from its schema. The call takes the same path as one of a client: every gate is asked and the audit log has it.</p>
          <ul class="plain">
            {items.slice(0, 6).map((tool) => (
              <li>
                <Risk risk={tool.risk} /> <a href={link('inspector', [tool.name])}><T text={tool.name} /></a>
              </li>
            ))}
          </ul>
        </Empty>
      )}
    </div>
  );
}

interface Called {
  callId: string;
  status: string;
  resultText: string | null;
  resultBytes: number;
  content: { type: string; text?: string; mimeType?: string }[];
  structured: unknown;
  error: { code?: string; message: string } | null;
  console: ConsoleLine[];
  elapsedMs: number;
  eras: { revision: string; before: unknown[]; headers: [string, string][]; request: unknown; response: unknown }[];
  notes?: string[];
}

function Runner({ name }: { name: string }) {
  const tool = useResource<Tool>(path(['tools', name]), ['tools']);
  const from = route.value.query.get('from');
  if (tool.isLoading) return <Loading what="the tool" />;
  if (!tool.data) return tool.error ? <Failed error={tool.error} retry={tool.reload} /> : null;
  return <Run tool={tool.data} from={from} />;
}

function Run({ tool, from }: { tool: Tool; from: string | null }) {
  const schema = tool.inputSchema as Schema;
  const draft = `call.${tool.name}`;
  const [text, setTextOnly] = useState(() => kept(draft)?.text ?? JSON.stringify(start(tool), null, 2));
  const [view, setView] = useState('form');
  const [result, setResult] = useState<Called>();
  const [ticket, setTicket] = useState<string>();
  const setText = (typed: string) => {
    setTextOnly(typed);
    keep(draft, typed, '');
  };
  const parsed = useMemo(() => {
    try {
      return { value: JSON.parse(text) as unknown };
    } catch (error) {
      return { why: (error as Error).message };
    }
  }, [text]);
  const earlier = useDeed(async (id: string) => {
    const call = await get<{ arguments: unknown }>(path(['audit', id]));
    if (call.arguments !== null && call.arguments !== undefined) setText(JSON.stringify(call.arguments, null, 2));
  });
  useEffect(() => {
    if (from) void earlier.run(from);
  }, [from]);
  const run = useDeed(async () => {
    if (!('value' in parsed)) return;
    const id = crypto.randomUUID();
    setTicket(id);
    try {
      setResult(await post<Called>('/inspector/call', { tool: tool.name, arguments: parsed.value, id }));
    } finally {
      setTicket(undefined);
    }
  });
  const cancel = useDeed(async () => void (await post('/inspector/cancel', { id: ticket })));
  return (
    <div class="two-columns">
      <div class="stack">
        <div class="row">
          <Risk risk={tool.risk} isLong />
          <a href={link('tools', [tool.name])}><T text={tool.name} /></a>
          <State of={tool.state} />
        </div>
        <p class="dim"><T text={tool.seen.description} /></p>
        <Tabs
          label="View of the arguments"
          at={view}
          onPick={setView}
          tabs={[
            { id: 'form', label: 'Form' },
            { id: 'raw', label: 'JSON' },
          ]}
        />
        {earlier.error && <Failed error={earlier.error} />}
        {view === 'raw' ? (
          <Editor text={text} language="json" label="arguments" onChange={setText} test="arguments-editor" />
        ) : 'value' in parsed ? (
          <SchemaForm schema={schema} value={parsed.value} set={(value) => setText(JSON.stringify(value ?? {}, null, 2))} />
        ) : (
          <Note kind="error">Not JSON: <T text={parsed.why} /></Note>
        )}
        <div class="row">
          <Button kind="primary" disabled={!canChange.value || !('value' in parsed)} isBusy={run.isBusy} onClick={() => void run.run()} test="run">
            <Icon name="inspector" /> Run as yourself
          </Button>
          {run.isBusy && (
            <Button kind="danger" isBusy={cancel.isBusy} onClick={() => void cancel.run()} test="cancel">
              Cancel
            </Button>
          )}
          {tool.canEdit && 'value' in parsed && (
            <Button kind="quiet" onClick={() => keepTestValues(tool, parsed.value) && go(link('tools', [tool.name, 'edit']))} test="as-test-value">
              Use as test values
            </Button>
          )}
          <Button kind="quiet" onClick={() => (drop(draft), setTextOnly(JSON.stringify(start(tool), null, 2)))}>
            Reset
          </Button>
        </div>
        {run.isBusy && (
          <p class="dim" role="status">
            Running. If the call needs a person, it waits in the <a href={link('inbox')}>inbox</a>.
          </p>
        )}
        {run.error && <Failed error={run.error} />}
        {result && <CallResult result={result} tool={tool} args={text} />}
      </div>
      <Explain tool={tool} args={'value' in parsed ? parsed.value : undefined} />
    </div>
  );
}

/** Where a form begins: required fields, and the test values the author gave. */
function start(tool: Tool): unknown {
  const value = initial(tool.inputSchema as Schema, tool.inputSchema as Schema);
  if (typeof value !== 'object' || value === null) return value ?? {};
  const made = value as Record<string, unknown>;
  for (const param of tool.params) {
    if (param.testValue === null || !param.required) continue;
    if (param.type === 'STRING') made[param.name] = param.testValue;
    else {
      try {
        made[param.name] = JSON.parse(param.testValue);
      } catch {
        // An invalid test value is the editor's finding, not the form's.
      }
    }
  }
  return made;
}

function CallResult({ result, tool, args }: { result: Called; tool: Tool; args: string }) {
  const [view, setView] = useState('content');
  return (
    <Section
      title="Result"
      test="call-result"
      aside={
        <>
          {duration(result.elapsedMs)} · {size(result.resultBytes)} · <a href={link('audit', [result.callId])}>audit entry</a>
        </>
      }
    >
      <div class="stack">
        <div class="row">
          <span class={`tag ${result.status}`} data-test="call-status">
            {result.status}
          </span>
          {result.error && <span><T text={result.error.message} /> {result.error.code && <code class="dim">{result.error.code}</code>}</span>}
        </div>
        <Tabs
          label="View of the result"
          at={view}
          onPick={setView}
          tabs={[
            { id: 'content', label: 'Content' },
            { id: 'structured', label: 'Structured' },
            { id: 'raw', label: 'Protocol' },
          ]}
        />
        {view === 'content' &&
          (result.content.length ? (
            result.content.map((block) => (block.type === 'text' ? <Pre text={block.text ?? ''} label="text" isTall /> : <p class="dim">{block.type} {block.mimeType}: shown by clients, not here</p>))
          ) : (
            <p class="dim">The result is empty.</p>
          ))}
        {view === 'structured' && (result.resultText !== null ? <Pre text={result.resultText} label="structured result" isTall /> : <p class="dim">The call has no structured result.</p>)}
        {view === 'raw' &&
          result.eras.map((era, index) => (
            <Fold title={`MCP ${era.revision}${index ? ', with a session' : ', each request by itself'}`} isOpen={!index}>
              {era.before.length > 0 && <Pre text={era.before.map((message) => JSON.stringify(message, null, 2)).join('\n')} label="messages before, once for each session" />}
              <Pre text={era.headers.map(([header, value]) => `${header}: ${value}`).join('\n')} label="headers of the request over HTTP" />
              <Pre text={JSON.stringify(era.request, null, 2)} label="request" />
              <Pre text={JSON.stringify(era.response, null, 2)} label="response" />
            </Fold>
          ))}
        {view === 'raw' && !result.eras.length && <p class="dim">The result is too long to be shown twice.</p>}
        {result.notes?.map((note) => <p class="dim"><T text={note} /></p>)}
        {result.console.length > 0 && (
          <Fold title={`Console (${result.console.length})`}>
            <Pre text={result.console.map((line) => `${line.level}  ${line.text}`).join('\n')} label="console" />
          </Fold>
        )}
        <div class="row">
          <Copy text={args} label="Copy the arguments" />
          <a class="button small quiet" href={link('policy', ['edit'], { tool: tool.name })}>
            Make a rule
          </a>
        </div>
      </div>
    </Section>
  );
}

interface Explained {
  effect: 'allow' | 'ask' | 'deny';
  gates: Gate[];
  risk: RiskFacts | null;
  sentences: string[];
}

/** What would happen, for anybody; nothing runs. */
function Explain({ tool, args }: { tool: Tool; args: unknown }) {
  const caller = route.value.query.get('as') ?? '';
  const callers = useResource<{ items: { name: string }[] }>('/callers', ['callers']);
  const [value, setValue] = useState<Explained>();
  const [error, setError] = useState<Refused>();
  const key = JSON.stringify(args ?? null);
  useEffect(() => {
    if (args === undefined) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post<Explained>('/inspector/explain', { tool: tool.name, arguments: args, ...(caller ? { caller, door: 'mcp' } : {}) }, abort.signal).then(
        (explained) => !abort.signal.aborted && (setValue(explained), setError(undefined)),
        (cause) => !abort.signal.aborted && cause instanceof Refused && setError(cause),
      );
    }, 250);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, caller, tool.digest]);
  return (
    <aside class="card" aria-label="What would happen" data-test="explain">
      <div class="row">
        <h2>What would happen</h2>
        <span class="grow" />
        <label class="dim" for="as">
          for
        </label>
        <select id="as" class="state-pick" value={caller} onChange={(event) => replace(withQuery({ as: event.currentTarget.value }))} data-test="as">
          <option value="">you, here</option>
          {callers.data?.items.map((known) => (
            <option value={known.name}>{known.name}</option>
          ))}
        </select>
      </div>
      {error && <Failed error={error} />}
      {value && (
        <div class="stack">
          <p>
            <span class={`tag ${value.effect}`} data-test="effect">
              {value.effect}
            </span>
          </p>
          {beyondGates(value.sentences, value.gates).map((sentence) => (
            <p><T text={sentence} /></p>
          ))}
          <Gates gates={value.gates} />
        </div>
      )}
    </aside>
  );
}

interface Issue {
  code: string;
  message: string;
  line: number | null;
  column: number | null;
  severity: 'error' | 'warning' | 'note';
}
interface Checked {
  valid: boolean;
  preset: string;
  presets: string[];
  issues: Issue[];
}
interface ScriptRun {
  callId: string;
  status: string;
  result: unknown;
  error?: { code: string; message: string } | null;
  children: CallRow[];
  elapsedMs: number;
}

const SAMPLE = `// A script sees the tools you may call, and nothing else.
const counted = await callTool('countWords', { text: 'one two three' });
const half = await callTool('evaluateExpression', { expression: \`\${counted.words} / 2\` });
return { counted, half };
`;

function Scratchpad() {
  const [code, setCodeOnly] = useState(() => kept('script')?.text ?? SAMPLE);
  const [preset, setPreset] = useState('');
  const [checked, setChecked] = useState<Checked>();
  const [result, setResult] = useState<ScriptRun>();
  const setCode = (typed: string) => {
    setCodeOnly(typed);
    keep('script', typed, '');
  };
  const check = useDeed(async (text: string, wished: string) => setChecked(await post<Checked>('/inspector/script/check', { code: text, ...(wished ? { preset: wished } : {}) })));
  useEffect(() => {
    const timer = setTimeout(() => void check.run(code, preset), 200);
    return () => clearTimeout(timer);
  }, [code, preset]);
  const run = useDeed(async () => setResult(await post<ScriptRun>('/inspector/script/run', { code, ...(preset ? { preset } : {}) })));
  const marks = useMemo(
    () => (checked?.issues ?? []).filter((issue) => issue.line !== null).map((issue) => ({ line: issue.line!, column: issue.column ?? 1, severity: issue.severity === 'note' ? ('info' as const) : issue.severity, message: issue.message })),
    [checked],
  );
  return (
    <div class="two-columns">
      <div class="stack">
        <Editor text={code} language="javascript" label="script" onChange={setCode} marks={marks} globals="SCRIPT" test="script-editor" />
        <div class="row">
          <Button kind="primary" disabled={!canChange.value || checked?.valid === false} isBusy={run.isBusy} onClick={() => void run.run()} test="run-script">
            <Icon name="inspector" /> Run
          </Button>
          <select class="state-pick" aria-label="preset" value={preset || checked?.preset || ''} onChange={(event) => setPreset(event.currentTarget.value)}>
            {(checked?.presets ?? []).map((name) => (
              <option>{name}</option>
            ))}
          </select>
          <span class="dim">{checked ? (checked.valid ? 'the guard accepts it' : 'the guard refuses it') : ''}</span>
          <span class="grow" />
          <Button kind="quiet" class="small" onClick={() => (drop('script'), setCodeOnly(SAMPLE))}>
            Reset
          </Button>
        </div>
        {check.error && <Failed error={check.error} />}
        {checked && checked.issues.length > 0 && (
          <Section title="What the guard says">
            <ul class="findings">
              {checked.issues.map((issue) => (
                <li>
                  <span class={`tag ${issue.severity}`}>{issue.severity}</span> <T text={issue.message} /> {issue.line !== null && <span class="dim">line {issue.line}:{issue.column}</span>}
                </li>
              ))}
            </ul>
          </Section>
        )}
      </div>
      <div class="stack">
        {run.error && <Failed error={run.error} />}
        {result ? (
          <Section title="Result" test="script-result" aside={<>{duration(result.elapsedMs)} · <a href={link('audit', [result.callId])}>audit entry</a></>}>
            <div class="stack">
              <span class={`tag ${result.status === 'ok' ? 'good' : 'error'}`}>{result.status}</span>
              {result.error && <p class="bad"><T text={result.error.message} /></p>}
              <Pre text={JSON.stringify(result.result ?? null, null, 2)} label="result" isTall />
              {result.children.length > 0 && (
                <ul class="calls">
                  {result.children.map((child) => (
                    <li>
                      <a href={link('audit', [child.id])}>
                        <span class="dim">called</span>
                        <Risk level={child.risk} />
                        <span class="what"><T text={child.tool} /></span>
                        <span class={`tag ${child.status}`}>{child.status}</span>
                      </a>
                    </li>
                  ))}
                </ul>
              )}
            </div>
          </Section>
        ) : (
          <Empty title="Code mode">
            <p>A script calls many tools in one go. Every call in it passes the same gates, and the audit log shows it as a tree.</p>
          </Empty>
        )}
      </div>
    </div>
  );
}
