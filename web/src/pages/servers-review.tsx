// What a server offers, item by item: shown in a review and in a trial.
import type { Risk as RiskFacts, UpstreamFinding } from '../lib/types';
import { Pre, Section, T } from '../ui/common';

export interface ReviewItem {
  key: string;
  name: string;
  change: 'new' | 'changed' | 'gone' | 'same';
  state: string;
  stateWords: string;
  risk: RiskFacts | null;
  fields: { field: string; class: string; before: string | null; after: string | null }[];
  findings: UpstreamFinding[];
}
export interface ReviewFacts {
  server: string;
  digest: string;
  decision: string;
  settled: boolean;
  items: ReviewItem[];
  findings: UpstreamFinding[];
  instructions?: string | null;
}

export function Upstream({ findings }: { findings: UpstreamFinding[] }) {
  if (!findings.length) return null;
  return (
    <Section title="Findings">
      <ul class="findings" data-test="upstream-findings">
        {findings.map((finding) => (
          <li>
            <span class={`tag ${finding.severity}`}>{finding.severity}</span> <T text={finding.message} /> <span class="dim"><T text={finding.place} /></span>
            {finding.evidence && <Pre text={finding.evidence} label="evidence" />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

export function Fields({ fields, isNew }: { fields: ReviewItem['fields']; isNew: boolean }) {
  if (!fields.length) return null;
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="fields">
      <table class="changes">
        <thead>
          <tr>
            <th>Field</th>
            {!isNew && <th>Accepted</th>}
            <th>Offered now</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr>
              <td>
                <code><T text={field.field} /></code>
                <p class="dim">{field.class}</p>
              </td>
              {!isNew && <td class="removed">{field.before === null ? <span class="dim">absent</span> : <pre><T text={field.before} lines="many" /></pre>}</td>}
              <td class="added">{field.after === null ? <span class="dim">absent</span> : <pre><T text={field.after} lines="many" /></pre>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
