// The rules: what they say, what the linter thinks, what another text would have changed, and applying it.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, path, post, put, Refused } from '../lib/api';
import { drop, keep, kept } from '../lib/draft';
import { useDeed, useResource } from '../lib/resource';
import { go, link, route } from '../lib/router';
import { canChange } from '../lib/session';
import type { CallRow, DiffLine, Lint, RuleRow } from '../lib/types';
import { Button, Diff, Empty, Failed, Field, Fold, Icon, Loading, Note, Section, T, Time } from '../ui/common';
import { Editor } from '../ui/editor';
import { Page } from '../ui/frame';

interface Policy {
  file: string;
  text: string;
  revision: string;
  rules: RuleRow[];
  askFrom: string | null;
  shadow: string | null;
  findings: Lint[];
  files: { name: string; text: string }[];
}

export default function PolicyPage() {
  const { path: parts } = route.value;
  const policy = useResource<Policy>('/policy', ['settings']);
  if (!policy.data) return <Page title="Policy">{policy.error ? <Failed error={policy.error} retry={policy.reload} /> : <Loading what="the rules" />}</Page>;
  return parts[0] === 'edit' ? <Edit policy={policy.data} set={policy.set} /> : <Show policy={policy.data} />;
}

function Show({ policy }: { policy: Policy }) {
  const at = route.value.query.get('rule');
  return (
    <Page
      title="Policy"
      actions={
        <a class="button small primary" href={link('policy', ['edit'])} data-test="edit-rules">
          Edit and rehearse
        </a>
      }
    >
      <p class="dim section">
        Deny beats ask, ask beats allow. <code><T text={policy.file} /></code>
        {policy.askFrom && <> · tools that ask by risk ask from {policy.askFrom} on</>}
        {policy.shadow && <> · shadow rules: <code><T text={policy.shadow} /></code></>}
      </p>
      <Lints findings={policy.findings} />
      {policy.rules.length ? <Rules rules={policy.rules} at={at} /> : (
        <Empty title="No rules">
          <p>Without rules each tool decides by its own approval mode and by its caller's level. A rule allows, asks or denies by tool, caller and arguments.</p>
          <p><a href={link('policy', ['edit'])}>Write the first rule</a> and rehearse it on past calls before it counts.</p>
        </Empty>
      )}
      {policy.files.map((file) => (
        <Fold title={<code><T text={file.name} /></code>}>
          <Editor text={file.text} language="text" label={file.name} isReadOnly />
        </Fold>
      ))}
    </Page>
  );
}

function Rules({ rules, at }: { rules: RuleRow[]; at?: string | null }) {
  return (
    <div class="table-scroll section" tabIndex={0} role="region" aria-label="rules">
      <table data-test="rules">
        <thead>
          <tr>
            <th>Effect</th>
            <th>Rule</th>
            <th>Says</th>
            <th>Where</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => (
            <tr class={rule.id === at ? 'at' : ''}>
              <td><span class={`tag ${rule.effect}`}>{rule.effect}</span></td>
              <td class="name"><code><T text={rule.id} /></code></td>
              <td>
                <T text={rule.words} />
                {rule.reason && <p class="dim"><T text={rule.reason} /></p>}
              </td>
              <td class="dim nowrap"><T text={rule.source} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Lints({ findings }: { findings: Lint[] }) {
  if (!findings.length) return null;
  return (
    <ul class="findings section" data-test="lints">
      {findings.map((finding) => (
        <li>
          <span class={`tag ${finding.severity}`}>{finding.severity}</span> <T text={finding.message} /> <span class="dim"><T text={finding.source} /></span>
        </li>
      ))}
    </ul>
  );
}

interface Group {
  kind: 'loosened' | 'tightened' | 'same-as-now';
  before: string;
  live: string;
  after: string;
  beforeRule: string | null;
  afterRule: string | null;
  tool: string;
  caller: string;
  count: number;
  reason: string | null;
  calls: string[];
}
interface Rehearsal {
  calls: number;
  changed: number;
  tightened: number;
  loosened: number;
  summary: string;
  groups: Group[];
  missing: { why: string; count: number }[];
}
interface Preview {
  diff: DiffLine[];
  widens: string[];
  findings: Lint[];
  ok: boolean;
}

function Edit({ policy, set }: { policy: Policy; set: (policy: Policy) => void }) {
  const { query } = route.value;
  const before = useMemo(() => kept('policy'), []);
  const [text, setTextOnly] = useState(() => before?.text ?? withRule(policy.text, query.get('tool'), query.get('caller')));
  const [base, setBase] = useState(policy.revision);
  const [lint, setLint] = useState<{ ok: boolean; findings: Lint[] }>();
  const [since, setSince] = useState('7d');
  const [rehearsal, setRehearsal] = useState<{ of: string; value: Rehearsal }>();
  const [preview, setPreview] = useState<{ of: string; value: Preview }>();
  const [reason, setReason] = useState('');
  const setText = (typed: string) => {
    setTextOnly(typed);
    keep('policy', typed, base);
  };
  const isDirty = text !== policy.text;
  const check = useDeed(async (typed: string) => setLint(await post('/policy/lint', { text: typed })));
  useEffect(() => {
    const timer = setTimeout(() => void check.run(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    if (!isDirty) setBase(policy.revision);
  }, [policy.revision]);
  const rehearse = useDeed(async () => setRehearsal({ of: text, value: await post<Rehearsal>('/policy/rehearse', { text, since }) }));
  const look = useDeed(async () => setPreview({ of: text, value: await post<Preview>('/policy/preview', { text }) }));
  const apply = useDeed(async () => {
    const now = await put<Policy>('/policy', { text, revision: base, reason, confirm: true });
    drop('policy');
    set(now);
    go(link('policy'));
  });
  const marks = useMemo(() => (lint?.findings ?? []).filter((finding) => finding.line !== null).map((finding) => ({ line: finding.line!, column: 1, severity: finding.severity, message: finding.message })), [lint]);
  const isShown = preview?.of === text;
  return (
    <Page title="Edit the rules">
      <div class="toolbar">
        <a class="button small quiet" href={link('policy')}>
          <Icon name="back" /> Rules
        </a>
        <span class="grow" />
        <select class="state-pick" aria-label="calls of" value={since} onChange={(event) => setSince(event.currentTarget.value)}>
          <option value="24h">calls of the last day</option>
          <option value="7d">calls of the last 7 days</option>
          <option value="30d">calls of the last 30 days</option>
        </select>
        <Button isBusy={rehearse.isBusy} disabled={lint?.ok === false} onClick={() => void rehearse.run()} test="rehearse">
          Rehearse on past calls
        </Button>
        <Button kind="primary" disabled={!isDirty || !canChange.value || lint?.ok === false} isBusy={look.isBusy} onClick={() => void look.run()} test="review-change">
          Review the change…
        </Button>
      </div>
      {before && isDirty && (
        <div class="section">
          <Note>
            <p>
              Unsaved text is shown.{' '}
              <button type="button" class="link" onClick={() => (drop('policy'), setTextOnly(policy.text))}>
                Use the file instead
              </button>
            </p>
          </Note>
        </div>
      )}
      {isDirty && base !== policy.revision && (
        <div class="section">
          <Note kind="warn">
            <p>
              <strong>The file changed meanwhile.</strong>{' '}
              <button type="button" class="link" onClick={() => setBase(policy.revision)}>
                Go on with mine
              </button>{' '}
              or{' '}
              <button type="button" class="link" onClick={() => (drop('policy'), setTextOnly(policy.text), setBase(policy.revision))}>
                take the file
              </button>
            </p>
          </Note>
        </div>
      )}
      <div class="two-columns">
        <div class="stack">
          <Editor text={text} language="text" label={`text of ${policy.file}`} onChange={setText} marks={marks} test="policy-editor" />
          {check.error && <Failed error={check.error} />}
          {lint && (lint.findings.length ? <Lints findings={lint.findings} /> : <p class="dim">The linter has nothing to say.</p>)}
        </div>
        <div class="stack">
          {[rehearse, look, apply].map((deed) => deed.error && <Failed error={deed.error} />)}
          {apply.error instanceof Refused && apply.error.status === 409 && <p class="dim">The file changed; load the page again to see it. Your text is kept.</p>}
          {isShown && preview && (
            <Section title="Apply" test="apply">
              <div class="stack">
                {preview.value.widens.length > 0 && (
                  <Note kind="warn">
                    <p><strong>This allows more than before:</strong></p>
                    <ul class="plain">
                      {preview.value.widens.map((words) => (
                        <li><T text={words} /></li>
                      ))}
                    </ul>
                  </Note>
                )}
                <Diff lines={preview.value.diff} label="change of the file" />
                <Field label="Reason, for the audit log">{(id) => <input id={id} value={reason} maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} data-test="reason" />}</Field>
                <div class="row">
                  <Button kind="primary" disabled={!preview.value.ok || !reason.trim()} isBusy={apply.isBusy} onClick={() => void apply.run()} test="apply-rules">
                    Apply
                  </Button>
                  <Button kind="quiet" onClick={() => setPreview(undefined)}>
                    Not yet
                  </Button>
                </div>
              </div>
            </Section>
          )}
          {rehearsal ? <Rehearsed value={rehearsal.value} isOld={rehearsal.of !== text} /> : (
            <Empty title="Rehearse before it counts">
              <p>The server judges every recorded call again with your text, without running anything, and shows whose decision would differ: loosened ones first.</p>
            </Empty>
          )}
        </div>
      </div>
    </Page>
  );
}

/** The text with a rule to begin with, from the call the person came from. */
function withRule(text: string, tool: string | null, caller: string | null): string {
  if (!tool) return text;
  const quote = (word: string) => JSON.stringify(word);
  const rule = ['', '[[rule]]', `id = ${quote(`about-${tool}`)}`, 'effect = "ask"', `tools = [${quote(tool)}]`, ...(caller ? [`callers = [${quote(caller)}]`] : []), 'reason = ""', ''].join('\n');
  return text.replace(/\n*$/, '\n') + rule;
}

function Rehearsed({ value, isOld }: { value: Rehearsal; isOld: boolean }) {
  return (
    <Section title="Rehearsal" test="rehearsal" aside={isOld ? 'of an earlier text' : undefined}>
      <div class="stack">
        <p>
          <strong data-test="rehearsal-summary"><T text={value.summary} /></strong>
        </p>
        {value.groups.map((group) => (
          <Fold
            title={
              <span class="row-inline">
                <span class={`tag ${group.kind === 'loosened' ? 'error' : group.kind === 'tightened' ? 'warn' : ''}`}>{group.kind}</span> {group.count} × <code><T text={group.tool} /></code> by <T text={group.caller} />: {group.before} → <strong>{group.after}</strong>
              </span>
            }
            isOpen={group.kind === 'loosened'}
          >
            {group.reason && <p><T text={group.reason} /></p>}
            <p class="dim">
              before: <T text={group.beforeRule ?? 'no rule'} /> · after: <T text={group.afterRule ?? 'no rule'} />
            </p>
            <Calls ids={group.calls} count={group.count} />
          </Fold>
        ))}
        {value.missing.map((gap) => (
          <p class="dim">{gap.count} calls are not judged: <T text={gap.why} /></p>
        ))}
      </div>
    </Section>
  );
}

function Calls({ ids, count }: { ids: string[]; count: number }) {
  const [calls, setCalls] = useState<CallRow[]>();
  const load = useDeed(async () => setCalls(await Promise.all(ids.slice(0, 20).map((id) => get<CallRow>(path(['audit', id]))))));
  if (!ids.length) return null;
  return (
    <>
      {!calls && (
        <Button class="small" isBusy={load.isBusy} onClick={() => void load.run()}>
          Show {count > ids.length ? `${ids.length} of ${count}` : ids.length} calls
        </Button>
      )}
      {load.error && <Failed error={load.error} />}
      <ul class="plain">
        {calls?.map((call) => (
          <li>
            <a href={link('audit', [call.id])}><T text={call.tool} /></a> <span class={`tag ${call.status}`}>{call.status}</span> <Time at={call.atMs} />
          </li>
        ))}
      </ul>
    </>
  );
}
