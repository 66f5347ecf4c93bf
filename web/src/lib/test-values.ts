// A call that becomes the test values of its tool: written into the document as unsaved text, for a person to save.
import { keep } from './draft';
import * as json from './json';
import type { Tool } from './types';

/** The document with the values as test values; a test value is always text. */
export function withTestValues(document: string, params: { name: string }[], values: Record<string, unknown>): string {
  let text = document;
  params.forEach((param, index) => {
    if (!Object.hasOwn(values, param.name)) return;
    const value = values[param.name];
    text = json.set(text, ['params', index, 'testValue'], typeof value === 'string' ? value : JSON.stringify(value));
  });
  return text;
}

/** Keeps them as unsaved text of the editor. False if the tool is not the person's own. */
export function keepTestValues(tool: Tool, values: unknown): boolean {
  if (!tool.canEdit || tool.document === null || typeof values !== 'object' || values === null) return false;
  return keep(`tool.${tool.name}`, withTestValues(tool.document, tool.params, values as Record<string, unknown>), tool.revision ?? '');
}
