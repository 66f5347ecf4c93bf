// The shapes of `/api/v1` that pages use. The server's OpenAPI document is their source.

export type Level = 'L0' | 'L1' | 'L2' | 'L3' | 'L4' | 'L5';
export interface Risk {
  level: Level;
  label: string;
  reasons: string[];
}
export interface Change {
  pointer: string;
  before: string | null;
  after: string | null;
}
export interface TreeNode {
  name: string | null;
  pointer: string;
  kind: 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array';
  text: string;
  chars: number;
  hidden: number;
  children: TreeNode[] | null;
}
export interface DiffLine {
  kind: 'same' | 'add' | 'remove';
  text: string;
  old: number | null;
  new: number | null;
}
export interface Finding {
  code: string;
  severity: 'error' | 'warning' | 'note';
  pointer?: string | null;
  message: string;
  line: number | null;
  column: number | null;
  endLine?: number | null;
  endColumn?: number | null;
  in?: 'document' | 'code';
  fix?: string | null;
}
export interface Gate {
  gate: string;
  verdict: 'pass' | 'ask' | 'stop';
  reason: string | null;
  note: string | null;
  rule: string | null;
  /** Microseconds; absent in older records. */
  us?: number | null;
}
export interface Param {
  name: string;
  description: string | null;
  type: string;
  required: boolean;
  testValue: string | null;
}
export interface Answer {
  by: string;
  channel: string;
  atMs: number;
  scope: string | null;
  note: string | null;
  uses: number;
  usedByCall: string | null;
  changed: Change[] | null;
}
export interface QuestionRow {
  id: string;
  state: 'pending' | 'approved' | 'used' | 'declined' | 'dismissed' | 'malformed' | 'revoked' | 'expired';
  tool: string;
  caller: string;
  kind: 'call' | 'trust';
  risk: Risk;
  sentence: string;
  askedAtMs: number;
  expiresAtMs: number;
  callId: string | null;
  answered: Answer | null;
}
export interface Question extends QuestionRow {
  prompt: string | null;
  why: string;
  rule: string | null;
  mayAnswer: string;
  argumentsText: string;
  arguments: Record<string, unknown> | null;
  argumentsTree: TreeNode | null;
  patch: { name: string; text: string }[];
  masked: boolean;
  touches: { kind: string; words: string }[];
  lastApproved: { id: string; atMs: number | null; by: string | null; argumentsText: string; diff: Change[] } | null;
  scopes: { scope: string; words: string }[];
  from: { caller: string; door: string | null; session: boolean; parent: { callId: string; tool: string } | null; script?: { words: string; lines: { number: number; text: string; waits: boolean }[] } | null };
  stale: boolean | null;
  staleWhy: string | null;
  canAnswer: boolean;
  cannotWhy: string | null;
  canChange: boolean;
  cannotChangeWhy: string | null;
  revision: string;
  inertMs: number;
  params: Param[];
  inputSchema: Schema | null;
}
export type Schema = { [keyword: string]: unknown };
export interface CallRow {
  kind: 'call';
  id: string;
  parentId: string | null;
  atMs: number;
  endedAtMs: number | null;
  tool: string;
  caller: string;
  origin: string;
  status: 'done' | 'refused' | 'failed' | 'cancelled' | 'crashed' | 'open';
  risk: Level | null;
  code: string | null;
  message: string | null;
  elapsedUs: number | null;
  sequence: number;
  differs: boolean;
}
export interface NoticeRow {
  kind: 'notice';
  id: string;
  atMs: number;
  act: string;
  by: string;
  through: string;
  about: string | null;
  message: string;
  details: Record<string, unknown>;
  sequence: number;
}
export type AuditRow = CallRow | NoticeRow;
export interface ToolRow {
  name: string;
  title: string;
  description: string;
  toolId: string;
  digest: string;
  state: string;
  stateWhy: string | null;
  missing: string[];
  notGranted: string[];
  risk: Risk;
  source: 'own' | 'bundled' | 'server';
  server: string | null;
  exposed: boolean;
  exposure: string;
  category: string | null;
  tags: string[];
  approval: string;
  file: string | null;
  lastPass: { ok: boolean; atMs: number; elapsedMs: number; error: string | null } | null;
}
export interface Variable {
  name: string;
  set: boolean;
  granted: boolean;
  words: string;
}
export interface Seen {
  name: string;
  description: string;
  inputSchema: Schema;
}
export interface Tool extends ToolRow {
  document: string | null;
  revision: string | null;
  inputSchema: Schema;
  outputSchema: Schema | null;
  toolSafety: unknown;
  humanInTheLoop: unknown;
  params: Param[];
  variables: Variable[];
  published: { digest: string; document: string | null; same: boolean } | null;
  findings: Finding[];
  seen: Seen;
  own: boolean;
  canEdit: boolean;
}
export interface Need {
  kind: string;
  words: string;
}
export interface Checked {
  ok: boolean;
  name: string | null;
  digest: string | null;
  state: string | null;
  risk: Risk | null;
  before: Risk | null;
  widens: string[];
  findings: Finding[];
  params: Param[];
  inputSchema: Schema | null;
  variables: Variable[];
  nameTaken: boolean;
  approval: string | null;
  approvalSuggested: string | null;
  oversight: { from: string; to: string; lowers: boolean; words: string } | null;
  seen: Seen | null;
  needs: Need[];
}
export interface Budget {
  name: string;
  used: number;
  of: number | null;
  unit: string;
}
export interface ConsoleLine {
  level: string;
  text: string;
}
export interface TestResult {
  tried: boolean;
  ok: boolean;
  callId: string | null;
  result: unknown;
  resultText: string | null;
  message?: string | null;
  error: { code: string; message: string; line?: number | null; column?: number | null } | null;
  console: ConsoleLine[];
  elapsedMs: number;
  budgets: Budget[];
  needs: Need[];
}
export interface UpstreamFinding {
  code: string;
  severity: 'hold' | 'warn';
  message: string;
  place: string;
  evidence: string | null;
}
export interface Lint {
  rule: string | null;
  kind: string;
  severity: 'error' | 'warning';
  message: string;
  source: string;
  line: number | null;
}
export interface RuleRow {
  id: string;
  effect: 'deny' | 'ask' | 'allow';
  words: string;
  source: string;
  reason?: string | null;
}
