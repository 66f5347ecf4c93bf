// JSON as text with places. The form of a tool changes one value of the document and leaves every
// other byte as its author wrote it: order, spaces and fields that no form knows.

export type Path = (string | number)[];

export interface Node {
  kind: 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';
  start: number;
  end: number;
  value: unknown;
  /** Of an object: its members in order. */
  members: Member[];
  /** Of an array. */
  items: Node[];
}

interface Member {
  name: string;
  start: number;
  node: Node;
}

export class JsonError extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

const DEPTH_MAX = 256;

/** Parses JSON and keeps where everything stands. */
export function parse(text: string): Node {
  let at = 0;
  const fail = (what: string): never => {
    throw new JsonError(what, at);
  };
  const space = () => {
    while (at < text.length && ' \t\n\r'.includes(text[at]!)) at++;
  };
  const expect = (mark: string) => {
    if (text[at] !== mark) fail(at < text.length ? `expected \`${mark}\`` : `the document ends before \`${mark}\``);
    at++;
  };
  const leaf = (kind: Node['kind'], start: number, value: unknown): Node => ({ kind, start, end: at, value, members: [], items: [] });
  const string = (): Node => {
    const start = at;
    at++;
    for (;;) {
      const mark = text[at];
      if (mark === undefined || mark < ' ') fail('a string without an end');
      at++;
      if (mark === '"') break;
      if (mark === '\\') at++;
    }
    try {
      return leaf('string', start, JSON.parse(text.slice(start, at)));
    } catch {
      at = start;
      return fail('a string with an invalid escape');
    }
  };
  const value = (depth: number): Node => {
    if (depth > DEPTH_MAX) fail('nested too deeply');
    space();
    const start = at;
    const mark = text[at];
    if (mark === '"') return string();
    if (mark === '{') return object(start, depth);
    if (mark === '[') return array(start, depth);
    const word = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/.exec(text.slice(at, at + 400))?.[0];
    if (!word) return fail(mark === undefined ? 'the document ends where a value should be' : 'not a value');
    at += word.length;
    if (word === 'null') return leaf('null', start, null);
    if (word === 'true' || word === 'false') return leaf('boolean', start, word === 'true');
    return leaf('number', start, Number(word));
  };
  const object = (start: number, depth: number): Node => {
    const members: Member[] = [];
    at++;
    space();
    if (text[at] === '}') at++;
    else
      for (;;) {
        space();
        const from = at;
        if (text[at] !== '"') fail('expected a name in quotes');
        const name = string().value as string;
        space();
        expect(':');
        members.push({ name, start: from, node: value(depth + 1) });
        space();
        if (text[at] === ',') at++;
        else break;
      }
    if (text[at - 1] !== '}' || members.length) expect('}');
    const made: [string, unknown][] = members.map((member) => [member.name, member.node.value]);
    return { kind: 'object', start, end: at, value: Object.fromEntries(made), members, items: [] };
  };
  const array = (start: number, depth: number): Node => {
    const items: Node[] = [];
    at++;
    space();
    if (text[at] === ']') at++;
    else {
      for (;;) {
        items.push(value(depth + 1));
        space();
        if (text[at] === ',') at++;
        else break;
      }
      expect(']');
    }
    return { kind: 'array', start, end: at, value: items.map((item) => item.value), members: [], items };
  };
  const node = value(0);
  space();
  if (at < text.length) fail('something follows the document');
  return node;
}

/** The node at a path, if it is there. */
export function find(node: Node, path: Path): Node | undefined {
  let found: Node | undefined = node;
  for (const step of path) {
    if (!found) return undefined;
    found = typeof step === 'number' ? found.items[step] : found.members.find((member) => member.name === step)?.node;
  }
  return found;
}

/** The text with the value at `path` replaced, added or, for `undefined`, removed. */
export function set(text: string, path: Path, value: unknown): string {
  if (path.length === 0) return print(value, '');
  const root = parse(text);
  const parentPath = path.slice(0, -1);
  const last = path.at(-1)!;
  let parent = find(root, parentPath);
  if (!parent || (parent.kind !== 'object' && parent.kind !== 'array')) {
    if (value === undefined) return text;
    return set(text, parentPath, typeof last === 'number' ? [value] : { [last]: value });
  }
  const siblings: { start: number; node: Node }[] = parent.kind === 'object' ? parent.members : parent.items.map((node) => ({ start: node.start, node }));
  const index = typeof last === 'number' ? last : parent.members.findIndex((member) => member.name === last);
  const there = siblings[index];
  if (there && value === undefined) return without(text, parent, siblings, index);
  if (there) {
    const { start, end } = there.node;
    return text.slice(0, start) + print(value, indentAt(text, there.start)) + text.slice(end);
  }
  if (value === undefined) return text;
  const lead = typeof last === 'number' ? '' : `${JSON.stringify(last)}: `;
  return add(text, parent, siblings, lead, value);
}

function without(text: string, parent: Node, siblings: { start: number; node: Node }[], index: number): string {
  const next = siblings[index + 1];
  const before = siblings[index - 1];
  if (next) return text.slice(0, siblings[index]!.start) + text.slice(next.start);
  if (before) return text.slice(0, before.node.end) + text.slice(siblings[index]!.node.end);
  return text.slice(0, parent.start + 1) + text.slice(parent.end - 1);
}

function add(text: string, parent: Node, siblings: { start: number; node: Node }[], lead: string, value: unknown): string {
  const last = siblings.at(-1);
  if (last) {
    const isOnLines = text.slice(parent.start, last.start).includes('\n');
    const indent = indentAt(text, last.start);
    const gap = isOnLines ? `\n${indent}` : ' ';
    return `${text.slice(0, last.node.end)},${gap}${lead}${isOnLines ? print(value, indent) : print(value, null)}${text.slice(last.node.end)}`;
  }
  const outer = indentAt(text, parent.start);
  const inner = `${outer}  `;
  const body = text.includes('\n') ? `\n${inner}${lead}${print(value, inner)}\n${outer}` : `${lead}${print(value, null)}`;
  return text.slice(0, parent.start + 1) + body + text.slice(parent.end - 1);
}

/** The spaces at the start of the line that holds an offset. */
function indentAt(text: string, offset: number): string {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, offset))![0];
}

/** Small things on one line, larger ones on lines below `indent`; `null`: all on one line. */
function print(value: unknown, indent: string | null): string {
  const flat = onOneLine(value);
  if (indent === null || flat.length <= 80 || typeof value !== 'object' || value === null) return flat;
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[\n${value.map((item) => inner + print(item, inner)).join(',\n')}\n${indent}]`;
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  return `{\n${members.map(([name, item]) => `${inner}${JSON.stringify(name)}: ${print(item, inner)}`).join(',\n')}\n${indent}}`;
}

function onOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).filter(([, item]) => item !== undefined);
    return members.length ? `{ ${members.map(([name, item]) => `${JSON.stringify(name)}: ${onOneLine(item)}`).join(', ')} }` : '{}';
  }
  return JSON.stringify(value);
}

/** Line and column, from one, of an offset. */
export function place(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
