// What confines tool code on this machine, layer by layer, as `ringfence doctor` says it.
import { get } from '../lib/api';
import { useDeed, useResource } from '../lib/resource';
import { duration } from '../lib/format';
import { Button, Failed, Icon, Loading, Note, Section, T, Time } from '../ui/common';
import { Page } from '../ui/frame';

interface Health {
  ok: boolean;
  checks: { group: string; name: string; ok: boolean; required?: boolean; says: string; reason: string | null; fix: string | null }[];
  landlockAbi: number | null;
  firstResultMs: number | null;
  checkedAtMs: number;
}

const TITLES: Record<string, string> = { sandbox: 'Sandbox', worker: 'Worker process', children: 'Child processes', home: 'Home' };

export default function HealthPage() {
  const health = useResource<Health>('/health', ['settings']);
  const again = useDeed(async () => health.set(await get<Health>('/health?fresh=true')));
  const facts = health.data;
  if (!facts) return <Page title="Health">{health.error ? <Failed error={health.error} retry={health.reload} /> : <Loading what="the layers" />}</Page>;
  const groups = [...new Set(facts.checks.map((check) => check.group))];
  return (
    <Page
      title="Health"
      actions={
        <Button class="small" isBusy={again.isBusy} onClick={() => void again.run()} test="check-again">
          Look again
        </Button>
      }
    >
      <div class="stack narrow" data-test="health">
        {again.error && <Failed error={again.error} />}
        <Note kind={facts.ok ? 'good' : 'error'}>
          <p>
            <strong>{facts.ok ? 'Every layer is up.' : 'Something is missing.'}</strong> <span class="dim">checked <Time at={facts.checkedAtMs} />{facts.firstResultMs !== null && <>; a first result takes {duration(facts.firstResultMs)}</>}</span>
          </p>
        </Note>
        {groups.map((group) => (
          <Section title={TITLES[group] ?? group}>
            <ul class="checks">
              {facts.checks.filter((check) => check.group === group).map((check) => (
                <li class={check.ok ? 'ok' : 'no'}>
                  <Icon name={check.ok ? 'ok' : 'no'} />
                  <div>
                    <strong><T text={check.name} /></strong> {!check.ok && <span class={`tag ${check.required === false ? 'warn' : 'error'}`}>{check.required === false ? 'not there' : 'missing'}</span>} <span><T text={check.says} /></span>
                    {check.reason && <p class="dim"><T text={check.reason} /></p>}
                    {check.fix && <p><T text={check.fix} /></p>}
                  </div>
                </li>
              ))}
            </ul>
          </Section>
        ))}
      </div>
    </Page>
  );
}
