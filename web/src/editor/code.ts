// CodeMirror, loaded when an editor is first shown. It lives in a shadow root: there its styles are
// adopted sheets, which the page's policy allows; in the document it would need inline styles.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { javascript, javascriptLanguage, localCompletionSource } from '@codemirror/lang-javascript';
import { json } from '@codemirror/lang-json';
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { unifiedMergeView } from '@codemirror/merge';
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search';
import { Annotation, Compartment, EditorState, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

export type Language = 'javascript' | 'json' | 'text';

export interface Mark {
  line: number;
  column: number;
  endLine?: number | null | undefined;
  endColumn?: number | null | undefined;
  severity: 'error' | 'warning' | 'info';
  message: string;
}
export interface Global {
  name: string;
  detail?: string | null;
  info?: string | null;
  needs?: string | null;
}
export interface Options {
  text: string;
  language: Language;
  label: string;
  isReadOnly?: boolean;
  onChange?: (text: string) => void;
  /** Shows what differs from this text. */
  original?: string;
}

const look = EditorView.theme({
  '&': { fontSize: '12.5px', color: 'var(--text)', backgroundColor: 'transparent', maxHeight: 'inherit' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--accent)', padding: '6px 0' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--dim)', border: 'none', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--accent) 7%, transparent)' },
  '.cm-cursor, .cm-dropCursor': { borderLeftColor: 'var(--accent)', borderLeftWidth: '2px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'color-mix(in srgb, var(--accent) 26%, transparent)' },
  '.cm-panels, .cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line)', borderRadius: '6px' },
  '.cm-panels': { borderRadius: '0' },
  '.cm-panel input, .cm-panel button': { font: 'inherit', color: 'var(--text)', background: 'var(--panel)', border: '1px solid var(--line-strong)', borderRadius: '4px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionDetail': { color: 'inherit', opacity: '.8', fontStyle: 'normal' },
  '.cm-diagnostic': { fontFamily: 'var(--sans)', fontSize: '13px', whiteSpace: 'pre-wrap' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--red)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--amber)' },
  // The editor's own marks are images in data URLs, which the policy of the page does not load.
  '.cm-lint-marker': { width: '1em', height: '1em', lineHeight: '1', fontSize: '11px' },
  '.cm-lint-marker-error': { content: '"●"', color: 'var(--red)' },
  '.cm-lint-marker-warning': { content: '"▲"', color: 'var(--amber)' },
  '.cm-lint-marker-info': { content: '"■"', color: 'var(--blue)' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--red)', textUnderlineOffset: '3px' },
  '.cm-lintRange-warning': { backgroundImage: 'none', textDecoration: 'underline wavy var(--amber)', textUnderlineOffset: '3px' },
  '.cm-lintRange-info, .cm-lintRange-hint': { backgroundImage: 'none', textDecoration: 'underline dotted var(--blue)', textUnderlineOffset: '3px' },
  '.cm-specialChar': { color: 'var(--red)' },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--sunken)', color: 'var(--dim)', border: '1px solid var(--line)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'transparent', outline: '1px solid var(--accent)' },
  '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--green-soft)' },
  '.cm-deletedChunk': { backgroundColor: 'var(--red-soft)' },
  // The package's own sign is missing in most fonts.
  '.cm-collapsedLines::before, .cm-collapsedLines::after': { content: '"···"' },
  '&.cm-merge-b .cm-changedText, .cm-changedText': { background: 'none', textDecoration: 'underline', textDecorationColor: 'var(--green)', textUnderlineOffset: '3px' },
  '&.cm-merge-b .cm-deletedText, .cm-deletedChunk .cm-deletedText, .cm-deletedText': { background: 'none', textDecoration: 'line-through', textDecorationColor: 'var(--red)' },
  '.cm-collapsedLines': { color: 'var(--dim)', background: 'var(--sunken)' },
});

const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], color: 'light-dark(#8a2b86, #d6a2e8)' },
    { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'light-dark(#1b6b3a, #8fd6a8)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'light-dark(#1d4ed8, #9dbcff)' },
    { tag: [tags.comment], color: 'var(--dim)', fontStyle: 'italic' },
    { tag: [tags.propertyName], color: 'light-dark(#0b5563, #86d3e0)' },
    { tag: [tags.function(tags.variableName)], color: 'light-dark(#7a4a00, #f0c987)' },
    { tag: [tags.invalid], color: 'var(--red)' },
  ]),
);

/** Marks a change that the page made, not the person. */
const isOurs = Annotation.define<boolean>();

export class Code {
  readonly view: EditorView;
  private readonly mode = new Compartment();

  constructor(root: ShadowRoot, options: Options, private globals: Global[] = []) {
    this.view = new EditorView({ parent: root, root, state: EditorState.create({ doc: options.text, extensions: this.extensions(options) }) });
  }

  private extensions(options: Options): Extension[] {
    const common = [
      look,
      colours,
      lineNumbers(),
      highlightSpecialChars(),
      drawSelection(),
      bracketMatching(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': options.label, spellcheck: 'false', autocorrect: 'off', autocapitalize: 'off' }),
      this.mode.of(options.language === 'json' ? json() : options.language === 'javascript' ? this.script() : []),
    ];
    if (options.original !== undefined) common.push(unifiedMergeView({ original: options.original, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } }));
    if (options.isReadOnly) return [...common, EditorState.readOnly.of(true), keymap.of(defaultKeymap)];
    return [
      ...common,
      foldGutter(),
      lintGutter(),
      history(),
      search({ top: true }),
      indentOnInput(),
      closeBrackets(),
      autocompletion(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSelectionMatches(),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
      EditorView.updateListener.of((update) => {
        const isByPerson = update.transactions.some((transaction) => transaction.docChanged && !transaction.annotation(isOurs));
        if (isByPerson) options.onChange?.(update.state.doc.toString());
      }),
    ];
  }

  /** JavaScript with the names that exist here: the globals of the sandbox and those of the code itself. */
  private script(): Extension {
    return [
      javascript(),
      javascriptLanguage.data.of({ autocomplete: localCompletionSource }),
      javascriptLanguage.data.of({ autocomplete: (context: CompletionContext) => this.complete(context) }),
    ];
  }

  private complete(context: CompletionContext): CompletionResult | null {
    const word = context.matchBefore(/[\w$][\w$.]*/);
    if (!word && !context.explicit) return null;
    return {
      from: word?.from ?? context.pos,
      validFor: /^[\w$.]*$/,
      options: this.globals.map((global) => ({
        label: global.name,
        type: global.name.includes('.') ? 'method' : 'variable',
        ...(global.detail ? { detail: global.detail } : {}),
        ...(global.info || global.needs ? { info: [global.info, global.needs && `needs: ${global.needs}`].filter(Boolean).join('\n') } : {}),
      })),
    };
  }

  setGlobals(globals: Global[]): void {
    this.globals = globals;
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Replaces the text from outside, keeping the cursor where it can stay. */
  setText(text: string): void {
    const old = this.text;
    if (old === text) return;
    let start = 0;
    while (start < old.length && start < text.length && old[start] === text[start]) start++;
    let end = 0;
    while (end < old.length - start && end < text.length - start && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
    this.view.dispatch({
      changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) },
      annotations: isOurs.of(true),
    });
  }

  /** Shows findings in the gutter and under the text. */
  setMarks(marks: Mark[]): void {
    const doc = this.view.state.doc;
    const offset = (line: number, column: number) => {
      if (line > doc.lines) return doc.length;
      const at = doc.line(Math.max(1, line));
      return Math.min(at.to, at.from + Math.max(0, column - 1));
    };
    const found: Diagnostic[] = marks.map((mark) => {
      const from = offset(mark.line, mark.column);
      const to = mark.endLine && mark.endColumn ? offset(mark.endLine, mark.endColumn) : (this.view.state.wordAt(from)?.to ?? Math.min(doc.length, from + 1));
      return { from, to: Math.max(from, to), severity: mark.severity, message: mark.message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, found));
  }

  /** Moves the cursor to a place and shows it. */
  reveal(line: number, column: number): void {
    const at = this.view.state.doc.line(Math.min(this.view.state.doc.lines, Math.max(1, line)));
    const position = Math.min(at.to, at.from + Math.max(0, column - 1));
    this.view.dispatch({ selection: { anchor: position }, effects: EditorView.scrollIntoView(position, { y: 'center' }) });
    this.view.focus();
  }

  destroy(): void {
    this.view.destroy();
  }
}
