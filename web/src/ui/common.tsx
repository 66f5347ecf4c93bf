// The small parts every page is made of. Text of others goes through <T>, nothing is ever HTML.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Refused } from '../lib/api';
import { exact, micros, now, relative } from '../lib/format';
import { runs, visible } from '../lib/text';
import type { Change, DiffLine, Finding, Gate, Level, Risk as RiskFacts, TreeNode } from '../lib/types';

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

/** Text of others: what cannot be seen is shown as its number, in a colour and a box of its own. */
export function T({ text, lines = 'one' }: { text: string | null | undefined; lines?: 'one' | 'many' }) {
  if (!text) return null;
  return <>{runs(text, lines).map((run) => (run.isEscape ? <span class="escape">{run.text}</span> : run.text))}</>;
}

const WORDS: Record<Level, string> = { L0: 'Verified', L1: 'Reserved', L2: 'Reserved', L3: 'Moderate', L4: 'High', L5: 'Critical' };

/** The risk of a tool or a call: always letter and digit, and a shape for L4 and L5. */
export function Risk({ risk, level, isLong }: { risk?: RiskFacts | null; level?: Level | null; isLong?: boolean }) {
  const of = risk?.level ?? level;
  if (!of) return <span class="risk none" title="not rated">–</span>;
  const word = risk?.label || WORDS[of];
  const reasons = risk?.reasons.map((reason) => visible(reason)).join('\n') ?? '';
  return (
    <span class={`risk ${of}`} title={`risk ${of} ${word}${reasons ? `\n${reasons}` : ''}`}>
      {of}
      {isLong && <span class="word"> {word}</span>}
    </span>
  );
}

/** Where a document stands, in small letters. */
export function State({ of, test }: { of: string; test?: string }) {
  const word = of.toLowerCase().replaceAll('_', '-');
  return (
    <span class={`tag ${word}`} data-test={test}>
      {word.replaceAll('-', ' ')}
    </span>
  );
}

export function Reasons({ risk }: { risk: RiskFacts }) {
  if (!risk.reasons.length) return <p class="dim">No reason raises it: it reaches no network, no file and no secret.</p>;
  return (
    <ul class="plain">
      {risk.reasons.map((reason) => (
        <li>
          <T text={reason} />
        </li>
      ))}
    </ul>
  );
}

export function Time({ at, isExact }: { at: number | null | undefined; isExact?: boolean }) {
  if (at === null || at === undefined) return <span class="dim">–</span>;
  const iso = new Date(at).toISOString();
  return (
    <time dateTime={iso} title={isExact ? relative(at, now.value) : exact(at)}>
      {isExact ? exact(at) : relative(at, now.value)}
    </time>
  );
}

export function Micros({ us }: { us: number | null | undefined }) {
  return us === null || us === undefined ? <span class="dim">–</span> : <>{micros(us)}</>;
}

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'type'> & { kind?: 'primary' | 'danger' | 'quiet' | undefined; isBusy?: boolean; isSubmit?: boolean; test?: string };

export function Button({ kind, isBusy, isSubmit, test, children, class: extra, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type={isSubmit ? 'submit' : 'button'}
      class={`button ${kind ?? ''} ${isBusy ? 'busy' : ''} ${extra ?? ''}`}
      aria-busy={isBusy || undefined}
      disabled={disabled || isBusy}
      data-test={test}
      {...rest}
    >
      {children}
    </button>
  );
}

export function Loading({ what }: { what: string }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    // A short wait shows nothing: what flashes is noise.
    const timer = setTimeout(() => setSlow(true), 250);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="state" role="status">
      {isSlow && <p class="dim">Loading {what}</p>}
    </div>
  );
}

export function Failed({ error, retry }: { error: Refused; retry?: () => void }) {
  return (
    <div class="note error" role="alert" data-test="failed">
      <p>
        <strong>
          <T text={error.message} />
        </strong>
      </p>
      {error.fix && (
        <p>
          <T text={error.fix} />
        </p>
      )}
      <p class="dim">
        <code>{error.code}</code>
      </p>
      {retry && (
        <Button onClick={retry} test="retry">
          Try again
        </Button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty" data-test="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Note({ kind = 'info', children, test }: { kind?: 'info' | 'warn' | 'error' | 'good'; children: ComponentChildren; test?: string }) {
  return (
    <div class={`note ${kind}`} role={kind === 'error' ? 'alert' : undefined} data-test={test}>
      {children}
    </div>
  );
}

export function Section({ title, aside, children, test }: { title: string; aside?: ComponentChildren; children: ComponentChildren; test?: string }) {
  const id = useId();
  return (
    <section class="section" aria-labelledby={id} data-test={test}>
      <div class="section-head">
        <h3 id={id}>{title}</h3>
        {aside && <div class="aside">{aside}</div>}
      </div>
      {children}
    </section>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <Button kind="quiet" class="small" onClick={() => void copy()}>
      <Icon name={isDone ? 'ok' : 'copy'} /> {isDone ? 'Copied' : label}
    </Button>
  );
}

export interface Tab {
  id: string;
  label: ComponentChildren;
}

/** Tabs as the pattern of the WAI says: one stop for Tab, arrows between them. */
export function Tabs({ tabs, at, onPick, label }: { tabs: Tab[]; at: string; onPick: (id: string) => void; label: string }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const index = tabs.findIndex((tab) => tab.id === at);
    const next = tabs[(index + step + tabs.length) % tabs.length]!;
    onPick(next.id);
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map((tab) => (
        <button type="button" role="tab" aria-selected={tab.id === at} tabIndex={tab.id === at ? 0 : -1} data-tab={tab.id} onClick={() => onPick(tab.id)}>
          {tab.label}
        </button>
      ))}
    </div>
  );
}

export function Field({ label, hint, children, error }: { label: string; hint?: ComponentChildren; error?: string | undefined; children: (id: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint && <p class="hint">{hint}</p>}
      {error && (
        <p class="hint bad" role="alert">
          <T text={error} />
        </p>
      )}
    </div>
  );
}

/** The arguments of a call as a tree. Whole values, never cut; long text in a box that scrolls, with its length. */
export function Tree({ node, depth = 0 }: { node: TreeNode; depth?: number }) {
  const hidden = node.hidden > 0 && <span class="tag warn">{node.hidden === 1 ? '1 invisible character' : `${node.hidden} invisible characters`}</span>;
  const isLong = node.chars > 160 || node.text.includes('\n');
  const name = node.name === null ? null : (
    <span class="key">
      <T text={node.name} />
    </span>
  );
  if (node.children) {
    const empty = node.kind === 'array' ? '[ ]' : '{ }';
    return (
      <div class={depth ? 'tree-node' : 'tree'}>
        {name && (
          <div class="tree-line">
            {name} <span class="dim">{node.children.length ? (node.kind === 'array' ? `list of ${node.children.length}` : `${node.children.length} fields`) : empty}</span>
          </div>
        )}
        {!name && !node.children.length && <span class="dim">no arguments</span>}
        {node.children.map((child) => (
          <Tree node={child} depth={depth + 1} />
        ))}
      </div>
    );
  }
  return (
    <div class={depth ? 'tree-node' : 'tree'}>
      <div class={isLong ? 'tree-long' : 'tree-line'}>
        {name}
        {isLong && <span class="dim"> {node.chars.toLocaleString('en')} characters</span>}
        {hidden}
        <Value node={node} isLong={isLong} />
      </div>
    </div>
  );
}

function Value({ node, isLong }: { node: TreeNode; isLong: boolean }) {
  if (node.kind !== 'string') return <code class={`value ${node.kind}`}>{node.text}</code>;
  if (!node.chars) return <code class="value string">"" <span class="dim">empty text</span></code>;
  if (!isLong) {
    return (
      <code class="value string">
        <Escaped text={node.text} />
      </code>
    );
  }
  return (
    // Long text scrolls; a person without a mouse must reach it.
    <pre class="value string scroll" tabIndex={0} role="region" aria-label={`value of ${node.name ?? 'the arguments'}`}>
      <Escaped text={node.text} />
    </pre>
  );
}

/** Text whose invisible characters the server has already written as numbers: these get their colour. */
export function Escaped({ text }: { text: string }) {
  const parts = text.split(/(\\u\{[0-9a-f]{1,6}(?: ×\d+)?\})/);
  return <>{parts.map((part, index) => (index % 2 ? <span class="escape">{part}</span> : <T text={part} lines="many" />))}</>;
}

export function Changes({ changes }: { changes: Change[] }) {
  if (!changes.length) return <p class="dim">No difference.</p>;
  return (
    <table class="changes">
      <thead>
        <tr>
          <th>Where</th>
          <th>Before</th>
          <th>Now</th>
        </tr>
      </thead>
      <tbody>
        {changes.map((change) => (
          <tr>
            <td>
              <code>
                <T text={change.pointer || 'whole'} />
              </code>
            </td>
            <td class="removed">{change.before === null ? <span class="dim">absent</span> : <pre><Escaped text={change.before} /></pre>}</td>
            <td class="added">{change.after === null ? <span class="dim">absent</span> : <pre><Escaped text={change.after} /></pre>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const SIGN = { same: ' ', add: '+', remove: '−' } as const;

/** A diff by lines. Equal stretches are folded, with their count. */
export function Diff({ lines, label }: { lines: DiffLine[]; label: string }) {
  const near = new Set<number>();
  lines.forEach((line, index) => {
    if (line.kind !== 'same') for (let other = index - 3; other <= index + 3; other++) near.add(other);
  });
  const rows: JSX.Element[] = [];
  let skipped = 0;
  const flush = () => {
    if (skipped) rows.push(<div class="diff-skip">{skipped} equal lines</div>);
    skipped = 0;
  };
  lines.forEach((line, index) => {
    if (!near.has(index)) {
      skipped++;
      return;
    }
    flush();
    rows.push(
      <div class={`diff-line ${line.kind}`}>
        <span class="number">{line.new ?? line.old ?? ''}</span>
        <span class="sign">{SIGN[line.kind]}</span>
        <span class="text">
          <T text={line.text} />
        </span>
      </div>,
    );
  });
  flush();
  if (!near.size) return <p class="dim">No line differs.</p>;
  return (
    <div class="diff scroll" role="region" aria-label={label} tabIndex={0}>
      {rows}
    </div>
  );
}

/** Sentences that say more than the gates, which are shown beside them. */
export function beyondGates(sentences: string[], gates: Gate[]): string[] {
  return sentences.filter((sentence) => !gates.some((gate) => sentence.startsWith(`${gate.gate}: `)));
}

const MARK = { pass: 'ok', ask: 'wait', stop: 'no' } as const;
const SAYS = { pass: 'pass', ask: 'ask', stop: 'stop' } as const;

/** The gates of a call, in order. The one that decided is open. */
export function Gates({ gates, decided, isTimed }: { gates: Gate[]; decided?: number | null | undefined; isTimed?: boolean }) {
  return (
    <ol class="gates" data-test="gates">
      {gates.map((gate, index) => (
        <li class={`${gate.verdict} ${index === decided ? 'decided' : ''}`}>
          <span class="mark">
            <Icon name={MARK[gate.verdict]} />
          </span>
          <div>
            <span class="gate-line">
              <strong>{gate.gate}</strong> <span class={`verdict ${gate.verdict}`}>{SAYS[gate.verdict]}</span>
              {index === decided && <span class="tag">decided here</span>}
              {isTimed && <span class="took">{gate.us === null || gate.us === undefined ? '' : micros(gate.us)}</span>}
            </span>
            {gate.note && (
              <p>
                <T text={gate.note} />
              </p>
            )}
            {(gate.reason || gate.rule) && (
              <p class="dim">
                {gate.rule && (
                  <>
                    rule <code><T text={gate.rule} /></code>{' '}
                  </>
                )}
                {gate.reason && <code>{gate.reason}</code>}
              </p>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}

export function Findings({ findings, onPick }: { findings: Finding[]; onPick?: (finding: Finding) => void }) {
  return (
    <ul class="findings" data-test="findings">
      {findings.map((finding) => (
        <li class={finding.severity}>
          <span class={`tag ${finding.severity}`}>{finding.severity}</span>{' '}
          <span>
            <T text={finding.message} />
          </span>{' '}
          {finding.line !== null && onPick ? (
            <button type="button" class="link" onClick={() => onPick(finding)}>
              {finding.in === 'code' ? 'code' : 'document'} {finding.line}:{finding.column ?? 1}
            </button>
          ) : (
            finding.line !== null && <span class="dim">line {finding.line}</span>
          )}
          {finding.fix && (
            <p class="dim">
              <T text={finding.fix} />
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}

/** A part that is opened on demand. */
export function Fold({ title, children, isOpen }: { title: ComponentChildren; children: ComponentChildren; isOpen?: boolean }) {
  return (
    <details class="fold" open={isOpen ?? false}>
      <summary>{title}</summary>
      <div class="fold-body">{children}</div>
    </details>
  );
}

/** JSON or text of others, whole, in a box that scrolls. */
export function Pre({ text, label, isTall }: { text: string; label: string; isTall?: boolean }) {
  return (
    <pre class={`scroll ${isTall ? 'tall' : ''}`} tabIndex={0} role="region" aria-label={label}>
      <T text={text} lines="many" />
    </pre>
  );
}

/** True for a moment after `stamp` changed: an answer then would be to what was there before. */
export function useInert(stamp: string, ms: number): boolean {
  const [settled, setSettled] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(stamp), ms);
    return () => clearTimeout(timer);
  }, [stamp, ms]);
  return settled !== stamp;
}

/** A list has its ends in the page, however long it is. */
const STEPS: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** j and k, or the arrows, Home and End, move through a list of links that are marked with `data-row`. */
export function useListKeys(isOn = true) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOn) return;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      const step = STEPS[event.key];
      if (!step) return;
      const inList = list.current?.contains(document.activeElement);
      // The other keys scroll the page elsewhere.
      if (event.key.length > 1 && !inList) return;
      const rows = [...(list.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])];
      if (!rows.length) return;
      // Keys come faster than pages: the focus is ahead of what is marked.
      const focused = rows.indexOf(document.activeElement as HTMLElement);
      const index = focused >= 0 ? focused : rows.findIndex((row) => row.getAttribute('aria-current') === 'true');
      const next = rows[Math.min(rows.length - 1, Math.max(0, index + step))];
      event.preventDefault();
      next?.focus();
      next?.click();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [isOn]);
  return list;
}

export function isTyping(event: Event): boolean {
  const at = event.composedPath()[0] as HTMLElement | undefined;
  return !!at && (at.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(at.tagName));
}

/** Saves text as a file. */
export function save(name: string, text: string, type = 'application/json'): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
