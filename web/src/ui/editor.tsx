// An editor as a part of a page. CodeMirror comes when the first one is shown.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Code, Language, Mark } from '../editor/code';
import type { Finding } from '../lib/types';

interface Props {
  text: string;
  language: Language;
  label: string;
  onChange?: (text: string) => void;
  marks?: Mark[];
  /** Whose names are completed. */
  globals?: 'TOOL' | 'SCRIPT';
  original?: string;
  isReadOnly?: boolean;
  /** Counted up to show a place. */
  reveal?: { line: number; column: number; wish: number } | undefined;
  test?: string;
}

export function Editor({ text, language, label, onChange, marks, globals, original, isReadOnly, reveal, test }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const code = useRef<Code | undefined>(undefined);
  const change = useRef(onChange);
  change.current = onChange;
  // What was typed and has not come back yet. A page that is a few keys behind must not undo them.
  const sent = useRef<string[]>([]);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let isGone = false;
    void import('../editor/code').then(({ Code }) => {
      if (isGone || !host.current) return;
      const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open', delegatesFocus: true });
      root.replaceChildren();
      code.current = new Code(root, {
        text,
        language,
        label,
        ...(isReadOnly ? { isReadOnly } : {}),
        ...(original !== undefined ? { original } : {}),
        onChange: (typed) => {
          sent.current.push(typed);
          change.current?.(typed);
        },
      });
      setReady(true);
    });
    return () => {
      isGone = true;
      code.current?.destroy();
      code.current = undefined;
      sent.current = [];
      setReady(false);
    };
  }, [language, original, isReadOnly]);
  useEffect(() => {
    const index = sent.current.lastIndexOf(text);
    if (index >= 0) sent.current.splice(0, index + 1);
    else {
      sent.current = [];
      code.current?.setText(text);
    }
  }, [text, isReady]);
  useEffect(() => code.current?.setMarks(marks ?? []), [marks, isReady]);
  useEffect(() => {
    if (globals && isReady) void import('../editor/globals').then((known) => code.current?.setGlobals(known[globals]));
  }, [globals, isReady]);
  useEffect(() => {
    if (reveal?.wish) code.current?.reveal(reveal.line, reveal.column);
  }, [reveal?.wish]);
  return <div class="editor" ref={host} data-test={test} data-ready={isReady} />;
}

/** Findings of one part of a document as marks of its editor. */
export function marksOf(findings: Finding[], part: 'document' | 'code'): Mark[] {
  return findings
    .filter((finding) => (finding.in ?? 'document') === part && finding.line !== null)
    .map((finding) => ({
      line: finding.line!,
      column: finding.column ?? 1,
      endLine: finding.endLine,
      endColumn: finding.endColumn,
      severity: finding.severity === 'note' ? 'info' : finding.severity,
      message: finding.message,
    }));
}
