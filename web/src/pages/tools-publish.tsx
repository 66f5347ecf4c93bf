// Publishing: what changes for callers, beside the button that does it.
import { useState } from 'preact/hooks';
import { path, post, Refused } from '../lib/api';
import { useDeed, useResource } from '../lib/resource';
import { link } from '../lib/router';
import { canChange } from '../lib/session';
import type { Change, Need, Risk as RiskFacts, TestResult, Tool } from '../lib/types';
import { Button, Changes, Failed, Findings, Icon, Loading, Note, Reasons, Risk, Section, T, Time } from '../ui/common';
import { Editor } from '../ui/editor';
import { Page } from '../ui/frame';
import { Consent, Result } from './tools-editor';

interface Difference {
  published: string | null;
  draft: string;
  changes: Change[];
  risk: { before: RiskFacts | null; after: RiskFacts };
  same: boolean;
}

export function Publish({ name }: { name: string }) {
  const tool = useResource<Tool>(path(['tools', name]), ['tools']);
  const diff = useResource<Difference>(path(['tools', name, 'diff']), ['tools']);
  const [needs, setNeeds] = useState<Need[]>();
  const [pass, setPass] = useState<TestResult>();
  const [isDone, setDone] = useState(false);
  const publish = useDeed(async (consent: string[] | undefined) => {
    setNeeds(undefined);
    try {
      const done = await post<{ ok: boolean; tool: Tool; pass: TestResult | null }>(path(['tools', name, 'publish']), { digest: tool.data!.digest, consent: consent ?? [] });
      if (done.pass) setPass(done.pass);
      setDone(done.ok);
      if (done.tool) tool.set(done.tool);
    } catch (error) {
      const wanted = error instanceof Refused && error.code === 'studio.consent' ? (error.body as { error: { details: { needs: Need[] } } }).error.details.needs : undefined;
      if (!wanted) throw error;
      setNeeds(wanted);
    }
  });
  const error = tool.error ?? diff.error;
  if (!tool.data || !diff.data) return <Page title={`Publish ${name}`}>{error ? <Failed error={error} retry={tool.reload} /> : <Loading what="the difference" />}</Page>;
  const { before, after } = diff.data.risk;
  const facts = tool.data;
  return (
    <Page title={`Publish ${name}`}>
      <div class="toolbar">
        <a class="button small quiet" href={link('tools', [name, 'edit'])}>
          <Icon name="back" /> Editor
        </a>
      </div>
      <div class="studio">
        <div class="left">
          <Section title={diff.data.published === null ? 'The document, published for the first time' : 'What changes for callers'}>
            {diff.data.published !== null && <Changes changes={diff.data.changes} />}
          </Section>
          <Editor text={diff.data.draft} language="json" label="document" isReadOnly {...(diff.data.published !== null ? { original: diff.data.published } : {})} test="diff-editor" />
        </div>
        <aside class="right" aria-label="Decision">
          <Section title="Risk">
            <div class="risk-move">
              {before && before.level !== after.level && (
                <>
                  <span class="was">
                    <Risk risk={before} />
                  </span>{' '}
                  →
                </>
              )}
              <Risk risk={after} isLong />
            </div>
            <Reasons risk={after} />
          </Section>
          {facts.findings.length > 0 && (
            <Section title="Findings">
              <Findings findings={facts.findings} />
            </Section>
          )}
          <Section title="Local Pass">
            {pass ? <Result result={pass} /> : facts.lastPass ? <p>{facts.lastPass.ok ? 'passed' : 'failed'} <Time at={facts.lastPass.atMs} /></p> : <p class="dim">Publishing runs its test values first; only what passes is published, exactly as it passed.</p>}
          </Section>
          {publish.error && <Failed error={publish.error} />}
          {needs && <Consent needs={needs} isBusy={publish.isBusy} agree={() => void publish.run(needs.map((need) => need.words))} refuse={() => setNeeds(undefined)} />}
          {isDone ? (
            <Note kind="good" test="published">
              <p>
                <strong>Published.</strong> {facts.exposed ? 'Clients see it at once.' : <>It is not exposed yet: <T text={facts.exposure} />. <a href={link('tools', [], { drawer: 'exposure' })}>Expose it</a></>}
              </p>
              <p>
                <a href={link('inspector', [name])}>Call it</a> · <a href={link('tools', [name])}>Overview</a> · <a href={link('connect')}>Connect a client</a>
              </p>
            </Note>
          ) : pass && !pass.ok ? (
            <Note kind="error">Not published: the test failed.</Note>
          ) : null}
          {!isDone && (
            <Button kind="primary" disabled={!canChange.value || diff.data.same} isBusy={publish.isBusy} onClick={() => void publish.run(undefined)} test="publish-now">
              {diff.data.same ? 'Already published' : 'Test and publish'}
            </Button>
          )}
        </aside>
      </div>
    </Page>
  );
}
