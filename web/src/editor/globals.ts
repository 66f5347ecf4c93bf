// Names for completion: what exists in the sandbox, from the lists its tests keep.
import names from 'surface';
import type { Global } from './code';

const NEEDS: [RegExp, string][] = [
  [/^fetch$/, 'a network that the document asks for'],
  [/^safety\.fs/, 'files that the document asks for'],
];

const needs = (name: string) => NEEDS.find(([pattern]) => pattern.test(name))?.[1];

export const TOOL: Global[] = [...names.powers.map((name) => ({ name, needs: needs(name) ?? 'a power' })), ...names.tool.map((name) => ({ name }))];
export const SCRIPT: Global[] = names.script.map((name) => (name === 'callTool' ? { name, detail: "callTool(name, arguments)" } : { name }));
