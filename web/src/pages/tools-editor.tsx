// Writing a tool: form and document are two views of one text, the document. The server rates and checks it
// after each pause; nothing is decided here.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { path, post, put, Refused } from '../lib/api';
import { drop, keep, kept } from '../lib/draft';
import { duration, relative, now, size } from '../lib/format';
import * as json from '../lib/json';
import { useDeed, useResource } from '../lib/resource';
import { go, link, replace, route, withQuery } from '../lib/router';
import { canChange } from '../lib/session';
import type { Budget, Checked, Finding, Need, Risk as RiskFacts, TestResult, Tool } from '../lib/types';
import { Button, Failed, Findings, Fold, Icon, Loading, Note, Pre, Reasons, Risk, Section, T, Tabs } from '../ui/common';
import { Editor, marksOf } from '../ui/editor';
import { Page } from '../ui/frame';
import { SeenBox } from './tools';
import { DocumentForm, type Edit } from './tools-form';

/** A pause in typing. */
const PAUSE_MS = 160;
/** How long the former level stays beside the new one. */
const MOVE_MS = 6000;

export function ToolEditor({ name }: { name: string | undefined }) {
  const tool = useResource<Tool>(name ? path(['tools', name]) : undefined, ['tools']);
  const template = useResource<{ document: string }>(name ? undefined : path(['tools', 'template']));
  const title = name ?? 'New tool';
  const source = name ? tool.data?.document : template.data?.document;
  const error = tool.error ?? template.error;
  if (source === undefined || source === null) {
    return (
      <Page title={title}>
        {error ? <Failed error={error} retry={tool.reload} /> : tool.data && !tool.data.canEdit ? <Note kind="warn">This tool is not yours to edit. Copy it as a new one first.</Note> : <Loading what="the document" />}
      </Page>
    );
  }
  return <Desk name={name} tool={tool.data} saved={source} reload={tool.reload} />;
}

function Desk({ name, tool, saved, reload }: { name: string | undefined; tool: Tool | undefined; saved: string; reload: () => void }) {
  const draftName = `tool.${name ?? ''}`;
  const before = useMemo(() => kept(draftName), []);
  const [text, setTextOnly] = useState(before?.text ?? saved);
  const [base, setBase] = useState({ text: saved, revision: tool?.revision ?? null });
  const [isRestored, setRestored] = useState(before !== undefined && before.text !== saved);
  const [isTouched, setTouched] = useState(name !== undefined);
  const [result, setResult] = useState<{ of: string; value: TestResult }>();
  const [needs, setNeeds] = useState<Need[]>();
  const [reveal, setReveal] = useState<{ part: 'document' | 'code'; line: number; column: number; wish: number }>();
  const view = route.value.query.get('view') === 'document' ? 'document' : 'form';
  const setText = (typed: string) => {
    setTextOnly(typed);
    keep(draftName, typed, base.revision ?? '');
  };
  const { checked, isChecking, error: checkError } = useCheck(text, name);
  const isDirty = text !== base.text;
  const isMoved = tool !== undefined && tool.revision !== base.revision && tool.document !== base.text;
  useEffect(() => {
    // The file is what we just saved, or nothing was typed: follow it.
    if (tool && tool.revision !== base.revision && (tool.document === text || !isDirty)) {
      setBase({ text: tool.document ?? '', revision: tool.revision });
      if (tool.document !== null) setTextOnly(tool.document);
    }
  }, [tool?.revision]);
  const edit: Edit = (at, value) => {
    try {
      setText(json.set(text, at, value));
    } catch {
      // The document is not JSON now; the form is not shown then.
    }
  };
  // The approval mode of a new tool follows its risk until its author touches it.
  useEffect(() => {
    const wished = checked?.approvalSuggested;
    if (isTouched || !wished || checked.approval === wished) return;
    edit(['humanInTheLoop', 'mode'], wished);
  }, [checked?.approvalSuggested, checked?.approval]);
  const leaveBehind = (written: Tool) => {
    drop(draftName);
    setRestored(false);
    setBase({ text: written.document ?? text, revision: written.revision });
  };
  const write = async (): Promise<Tool> => {
    const as = checked?.name ?? name;
    if (!as) throw new Refused(0, 'studio.page', 'the document has no name yet', 'give the tool a name', undefined);
    const written = await put<Tool>(path(['tools', as, 'document']), { document: text, revision: as === name ? base.revision : null });
    leaveBehind(written);
    return written;
  };
  const save = useDeed(async () => {
    const written = await write();
    if (written.name !== name) go(link('tools', [written.name, 'edit']));
    else reload();
  });
  const publish = useDeed(async () => {
    const as = isDirty || !name ? (await write()).name : name;
    go(link('tools', [as, 'publish']));
  });
  const test = useDeed(async (consent: string[] | undefined) => {
    const as = checked?.name ?? name;
    if (!as) throw new Refused(0, 'studio.page', 'the document has no name yet', 'give the tool a name', undefined);
    setNeeds(undefined);
    try {
      setResult({ of: text, value: await post<TestResult>(path(['tools', as, 'test']), { document: text, consent: consent ?? [] }) });
    } catch (error) {
      const wanted = error instanceof Refused && error.code === 'studio.consent' ? (error.body as { error: { details: { needs: Need[] } } }).error.details.needs : undefined;
      if (!wanted) throw error;
      setNeeds(wanted);
    }
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey)) return;
      if (event.key === 's') {
        event.preventDefault();
        void save.run();
      } else if (event.key === 'Enter') {
        event.preventDefault();
        void test.run(undefined);
      }
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
  const findings = checked?.findings ?? [];
  const pick = (finding: Finding) => {
    const part = finding.in ?? 'document';
    if (part === 'document' && view !== 'document') go(withQuery({ view: 'document' }));
    setReveal({ part, line: finding.line ?? 1, column: finding.column ?? 1, wish: Date.now() });
  };
  const node = useMemo(() => {
    try {
      return json.parse(text);
    } catch (error) {
      return error as json.JsonError;
    }
  }, [text]);
  const isJson = !(node instanceof Error);
  const documentMarks = useMemo(
    () => (node instanceof json.JsonError ? [{ ...json.place(text, node.offset), severity: 'error' as const, message: node.message }] : marksOf(findings, 'document')),
    [findings, node],
  );
  const codeMarks = useMemo(() => {
    const thrown = result?.of === text ? result.value.error : undefined;
    const marks = marksOf(findings, 'code');
    return thrown?.line ? [...marks, { line: thrown.line, column: thrown.column ?? 1, severity: 'error' as const, message: thrown.message }] : marks;
  }, [findings, result, text]);
  const shownName = checked?.name ?? name ?? 'New tool';
  const isOff = !canChange.value;
  return (
    <Page
      title={shownName}
      actions={
        <div class="row">
          <span class="tag hide-small" data-test="saved">
            {isDirty ? 'unsaved' : name ? 'saved' : 'new'}
          </span>
        </div>
      }
    >
      <div class="toolbar">
        <a class="button small quiet" href={name ? link('tools', [name]) : link('tools')}>
          <Icon name="back" /> {name ? 'Overview' : 'Tools'}
        </a>
        <span class="grow" />
        <Button disabled={isOff || !isJson} isBusy={test.isBusy} onClick={() => void test.run(undefined)} test="run-test" title="Ctrl Enter">
          <Icon name="inspector" /> Test
        </Button>
        <Button disabled={isOff || (!isDirty && name !== undefined) || !isJson} isBusy={save.isBusy} onClick={() => void save.run()} test="save" title="Ctrl S">
          Save draft
        </Button>
        <Button kind="primary" disabled={isOff || !checked?.ok} isBusy={publish.isBusy} onClick={() => void publish.run()} test="go-publish">
          Publish…
        </Button>
      </div>
      {isRestored && (
        <div class="section">
          <Note kind="info" test="restored">
            <p>
              Unsaved text is shown, typed {relative(before!.time, now.value)}.{' '}
              <button type="button" class="link" onClick={() => (setTextOnly(base.text), drop(draftName), setRestored(false))}>
                Use the saved document instead
              </button>
            </p>
          </Note>
        </div>
      )}
      {isMoved && isDirty && (
        <div class="section">
          <Note kind="warn" test="moved">
            <p>
              <strong>The file changed meanwhile.</strong> Saving is refused until you decide.{' '}
              <button type="button" class="link" onClick={() => setBase({ text: tool.document ?? '', revision: tool.revision })}>
                Keep mine
              </button>{' '}
              or{' '}
              <button type="button" class="link" onClick={() => (setBase({ text: tool.document ?? '', revision: tool.revision }), setTextOnly(tool.document ?? ''), drop(draftName))}>
                take the file
              </button>
            </p>
          </Note>
        </div>
      )}
      {[save, publish].map((deed) => deed.error && <div class="section"><Failed error={deed.error} /></div>)}
      <div class="studio">
        <div class="left stack">
          <Tabs
            label="View of the tool"
            at={view}
            onPick={(id) => replace(withQuery({ view: id === 'form' ? undefined : id }))}
            tabs={[
              { id: 'form', label: 'Form and code' },
              { id: 'document', label: 'Document' },
            ]}
          />
          {view === 'document' ? (
            <Editor text={text} language="json" label="document" onChange={setText} marks={documentMarks} reveal={reveal?.part === 'document' ? reveal : undefined} test="document-editor" />
          ) : isJson ? (
            <>
              <DocumentForm document={(node as json.Node).value as Record<string, unknown>} edit={edit} checked={checked} touch={() => setTouched(true)} text={text} name={name} />
              <Section title="Code" aside="JavaScript, the body of an async function · Esc, then Tab leaves the editor">
                <Editor text={codeOf((node as json.Node).value)} language="javascript" label="code" onChange={(code) => edit(['code'], code)} marks={codeMarks} globals="TOOL" reveal={reveal?.part === 'code' ? reveal : undefined} test="code-editor" />
              </Section>
            </>
          ) : (
            <Note kind="error">
              <p>The document is not JSON: <T text={(node as Error).message} />.</p>
              <p>
                <button type="button" class="link" onClick={() => go(withQuery({ view: 'document' }))}>
                  Fix it in the document
                </button>
              </p>
            </Note>
          )}
        </div>
        <aside class="right" aria-label="What the server says about it">
          <Section title="Risk" test="risk" aside={isChecking ? 'checking' : checked?.ok === false ? 'cannot be used yet' : undefined}>
            {checkError && <Failed error={checkError} />}
            {checked?.risk ? <Moving risk={checked.risk} /> : <p class="dim">Not rated: fix the errors first.</p>}
            {checked?.widens.length ? (
              <div class="note warn">
                <p>Widens what is published:</p>
                <ul class="plain">
                  {checked.widens.map((words) => (
                    <li><T text={words} /></li>
                  ))}
                </ul>
              </div>
            ) : null}
          </Section>
          <Section title={findings.length ? `Findings (${findings.length})` : 'Findings'}>
            {findings.length ? <Findings findings={findings} onPick={pick} /> : <p class="dim">None.</p>}
          </Section>
          <Section title="Test" test="test-section">
            {test.error && <Failed error={test.error} />}
            {needs && <Consent needs={needs} isBusy={test.isBusy} agree={() => void test.run(needs.map((need) => need.words))} refuse={() => setNeeds(undefined)} />}
            {result ? <Result result={result.value} isOld={result.of !== text} /> : !needs && <p class="dim">Runs the tool with its test values in the real sandbox, on an empty workspace.</p>}
          </Section>
          {checked?.seen && (
            <Section title="What the model sees">
              <SeenBox seen={checked.seen} />
            </Section>
          )}
        </aside>
      </div>
    </Page>
  );
}

function codeOf(value: unknown): string {
  const code = (value as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

/** The server's opinion of the text, after each pause. The last answer stays until the next. */
function useCheck(text: string, name: string | undefined) {
  const [state, setState] = useState<{ of: string; checked: Checked }>();
  const [error, setError] = useState<Refused>();
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => {
    const timer = setTimeout(() => {
      running.current?.abort();
      const abort = new AbortController();
      running.current = abort;
      post<Checked>('/tools/check', { document: text, ...(name ? { name } : {}) }, abort.signal).then(
        (checked) => {
          if (abort.signal.aborted) return;
          setState({ of: text, checked });
          setError(undefined);
        },
        (cause) => {
          if (!abort.signal.aborted) setError(cause instanceof Refused ? cause : undefined);
        },
      );
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, name]);
  return { checked: state?.checked, isChecking: state?.of !== text, error };
}

/** The level, and for a moment the one it was, so that cause and effect are seen together. */
function Moving({ risk }: { risk: RiskFacts }) {
  const last = useRef(risk);
  const [was, setWas] = useState<RiskFacts>();
  useEffect(() => {
    if (last.current.level === risk.level) {
      last.current = risk;
      return;
    }
    setWas(last.current);
    last.current = risk;
    const timer = setTimeout(() => setWas(undefined), MOVE_MS);
    return () => clearTimeout(timer);
  }, [risk.level]);
  const reasons = risk.reasons.filter((reason) => !was?.reasons.includes(reason));
  return (
    <div class="stack" role="status">
      <div class="risk-move" data-test="risk-now" data-level={risk.level}>
        {was && was.level !== risk.level && (
          <>
            <span class="was">
              <Risk risk={was} />
            </span>{' '}
            →
          </>
        )}
        <Risk risk={risk} isLong />
        {was && was.level !== risk.level && reasons[0] && <span class="dim"><T text={reasons[0]} /></span>}
      </div>
      <Reasons risk={risk} />
    </div>
  );
}

/** What a run reaches, agreed to by name before it starts. */
export function Consent({ needs, isBusy, agree, refuse }: { needs: Need[]; isBusy: boolean; agree: () => void; refuse: () => void }) {
  return (
    <Note kind="warn" test="consent">
      <p>
        <strong>A test run of this tool</strong>
      </p>
      <ul class="plain">
        {needs.map((need) => (
          <li>
            <span class="tag warn">{need.kind}</span> <T text={need.words} />
          </li>
        ))}
      </ul>
      <div class="row">
        <Button class="small" isBusy={isBusy} onClick={agree} test="agree">
          Allow this and run
        </Button>
        <Button class="small" kind="quiet" onClick={refuse}>
          Do not run
        </Button>
      </div>
    </Note>
  );
}

export function Result({ result, isOld }: { result: TestResult; isOld?: boolean }) {
  return (
    <div class="stack" data-test="test-result" data-ok={result.ok}>
      {isOld && <p class="dim">The text changed since this run.</p>}
      <div class="row">
        <span class={`tag ${result.ok ? 'good' : 'error'}`}>{result.ok ? 'passed' : 'failed'}</span>
        <span class="dim">{duration(result.elapsedMs)}</span>
        {result.callId && <a href={link('audit', [result.callId])}>audit entry</a>}
      </div>
      {!result.error && result.message && <Note kind="error"><T text={result.message} /></Note>}
      {result.error && (
        <Note kind="error">
          <p><T text={result.error.message} lines="many" /></p>
          <p class="dim">
            <code>{result.error.code}</code>
            {result.error.line ? ` line ${result.error.line}` : ''}
          </p>
        </Note>
      )}
      {result.resultText !== null && result.resultText !== undefined && <Pre text={result.resultText} label="result" />}
      {result.console.length > 0 && (
        <Fold title={`Console (${result.console.length})`} isOpen>
          <div class="console scroll" tabIndex={0} role="region" aria-label="console">
            {result.console.map((line) => (
              <div>
                <span class={line.level === 'error' ? 'bad' : 'dim'}>{line.level}</span> <T text={line.text} lines="many" />
              </div>
            ))}
          </div>
        </Fold>
      )}
      <Budgets budgets={result.budgets} />
    </div>
  );
}

function Budgets({ budgets }: { budgets: Budget[] }) {
  const words = (value: number, unit: string) => (unit === 'bytes' ? size(value) : unit === 'ms' ? duration(value) : value.toLocaleString('en'));
  return (
    <div class="stack">
      {budgets.map((budget) => (
        <div class="bar">
          <span>{budget.name === 'hostCalls' ? 'host calls' : budget.name}</span>
          {budget.of === null ? <span /> : <progress aria-label={`${budget.name} used`} max={budget.of || 1} value={budget.used} />}
          <span class="dim">
            {words(budget.used, budget.unit)}
            {budget.of !== null && ` of ${words(budget.of, budget.unit)}`}
          </span>
        </div>
      ))}
    </div>
  );
}

