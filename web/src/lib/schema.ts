// A form from a JSON Schema. Three things stay apart for every optional field: left out, null, and empty. What a
// form cannot express (unknown keywords, mixed types) is edited as JSON, so nothing is ever lost or invented.
import type { Schema } from './types';

export type Shape =
  | { kind: 'text'; isLong: boolean }
  | { kind: 'number'; isWhole: boolean }
  | { kind: 'flag' }
  | { kind: 'choice'; values: unknown[] }
  | { kind: 'object'; fields: Field[]; isOpen: boolean }
  | { kind: 'list'; item: Schema }
  | { kind: 'union'; options: Schema[] }
  | { kind: 'json' };

export interface Field {
  name: string;
  schema: Schema;
  isRequired: boolean;
}

/** Longer than any sensible nesting; a schema that refers to itself ends here, as JSON. */
const DEPTH_MAX = 8;

const types = (schema: Schema): string[] => (Array.isArray(schema.type) ? (schema.type as string[]) : typeof schema.type === 'string' ? [schema.type] : []);

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Follows `$ref` within the schema. */
export function resolve(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let step = 0; step < DEPTH_MAX && typeof found.$ref === 'string'; step++) {
    const pointer = (found.$ref as string).replace(/^#\/?/, '');
    let at: unknown = root;
    for (const part of pointer.split('/').filter(Boolean)) at = isSchema(at) ? at[part.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
    if (!isSchema(at)) return {};
    const { $ref: _, ...rest } = found;
    found = { ...at, ...rest };
  }
  return found;
}

/** Whether null is a value of it. */
export function takesNull(schema: Schema, root: Schema): boolean {
  const known = resolve(schema, root);
  const options = [...list(known.anyOf), ...list(known.oneOf)];
  return types(known).includes('null') || list(known.enum).includes(null) || options.some((option) => isSchema(option) && takesNull(option, root));
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** How a schema is shown. Null is a state of the field, not a shape. */
export function shape(schema: Schema, root: Schema, depth = 0): Shape {
  const known = resolve(schema, root);
  if (depth > DEPTH_MAX) return { kind: 'json' };
  const options = [...list(known.oneOf), ...list(known.anyOf)].filter(isSchema).filter((option) => types(resolve(option, root)).join() !== 'null');
  if (options.length === 1) return shape({ ...options[0]! }, root, depth + 1);
  if (options.length > 1) {
    const constants = options.map((option) => resolve(option, root)).map((option) => ('const' in option ? option.const : undefined));
    if (constants.every((value) => value !== undefined)) return { kind: 'choice', values: constants };
    // Fields that stand beside the alternatives belong to each of them.
    const { oneOf: _o, anyOf: _a, ...beside } = known;
    return { kind: 'union', options: options.map((option) => merge(beside, resolve(option, root))) };
  }
  if ('const' in known) return { kind: 'choice', values: [known.const] };
  const values = list(known.enum).filter((value) => value !== null);
  if (values.length) return { kind: 'choice', values };
  const named = types(known).filter((type) => type !== 'null');
  if (named.length > 1) return { kind: 'union', options: named.map((type) => ({ ...known, type })) };
  switch (named[0]) {
    case 'string':
      return { kind: 'text', isLong: typeof known.maxLength !== 'number' || known.maxLength > 200 };
    case 'integer':
    case 'number':
      return { kind: 'number', isWhole: named[0] === 'integer' };
    case 'boolean':
      return { kind: 'flag' };
    case 'array':
      return isSchema(known.items) ? { kind: 'list', item: known.items } : { kind: 'json' };
    case 'object':
    case undefined:
      break;
    default:
      return { kind: 'json' };
  }
  if (!isSchema(known.properties)) return { kind: 'json' };
  const required = list(known.required);
  const fields = Object.entries(known.properties)
    .filter((entry): entry is [string, Schema] => isSchema(entry[1]))
    .map(([name, property]) => ({ name, schema: property, isRequired: required.includes(name) }));
  return { kind: 'object', fields, isOpen: known.additionalProperties !== false };
}

function merge(beside: Schema, option: Schema): Schema {
  const properties = { ...(isSchema(beside.properties) ? beside.properties : {}), ...(isSchema(option.properties) ? option.properties : {}) };
  const required = [...new Set([...list(beside.required), ...list(option.required)])];
  return { ...beside, ...option, ...(Object.keys(properties).length ? { properties } : {}), ...(required.length ? { required } : {}) };
}

/** The first value a field has when it is no longer left out. */
export function initial(schema: Schema, root: Schema): unknown {
  const known = resolve(schema, root);
  if ('default' in known) return known.default;
  const of = shape(known, root);
  switch (of.kind) {
    case 'text':
      return '';
    case 'number':
      return typeof known.minimum === 'number' ? known.minimum : 0;
    case 'flag':
      return false;
    case 'choice':
      return of.values[0];
    case 'list':
      return [];
    case 'object':
      return Object.fromEntries(of.fields.filter((field) => field.isRequired).map((field) => [field.name, initial(field.schema, root)]));
    case 'union':
      return initial(of.options[0]!, root);
    case 'json':
      return null;
  }
}

/** Which alternative of a union a value is shown with: the first whose type and required fields it has. */
export function alternative(options: Schema[], value: unknown, root: Schema): number {
  const is = (schema: Schema): boolean => {
    const of = shape(schema, root);
    switch (of.kind) {
      case 'text':
        return typeof value === 'string';
      case 'number':
        return typeof value === 'number';
      case 'flag':
        return typeof value === 'boolean';
      case 'choice':
        return of.values.includes(value);
      case 'list':
        return Array.isArray(value);
      case 'object': {
        if (!isSchema(value)) return false;
        return of.fields.every((field) => (field.isRequired ? field.name in value : true) && constant(field.schema, value[field.name], root));
      }
      case 'union':
        return of.options.some(is);
      case 'json':
        return true;
    }
  };
  return Math.max(0, options.findIndex(is));
}

function constant(schema: Schema, value: unknown, root: Schema): boolean {
  const known = resolve(schema, root);
  return !('const' in known) || value === undefined || known.const === value;
}

/** A name for an alternative. */
export function title(schema: Schema, root: Schema, index: number): string {
  const known = resolve(schema, root);
  if (typeof known.title === 'string') return known.title;
  const of = shape(known, root);
  if (of.kind === 'object') return of.fields.filter((field) => field.isRequired).map((field) => field.name).join(', ') || `object ${index + 1}`;
  return types(known)[0] ?? of.kind;
}
