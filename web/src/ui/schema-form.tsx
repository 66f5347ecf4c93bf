// The form of a schema. A field has a state (left out, null, a value) beside its value, so that none turns into
// another by itself.
import { useId, useState } from 'preact/hooks';
import { alternative, initial, resolve, shape, takesNull, title, type Field as SchemaField } from '../lib/schema';
import { visible } from '../lib/text';
import type { Schema } from '../lib/types';
import { Button, Icon, T } from './common';

interface Props {
  schema: Schema;
  root: Schema;
  value: unknown;
  set: (value: unknown) => void;
  label: string;
  id?: string;
}

/** The whole form; the value of an absent field is `undefined`, which JSON leaves out. */
export function SchemaForm({ schema, value, set }: { schema: Schema; value: unknown; set: (value: unknown) => void }) {
  return (
    <div class="form" data-test="schema-form">
      <Input schema={schema} root={schema} value={value} set={set} label="arguments" />
    </div>
  );
}

function Input({ schema, root, value, set, label, id }: Props) {
  const of = shape(schema, root);
  const known = resolve(schema, root);
  switch (of.kind) {
    case 'text':
      return (typeof value === 'string' && (value.length > 60 || value.includes('\n'))) ? (
        <textarea id={id} aria-label={id ? undefined : label} value={value} onInput={(event) => set(event.currentTarget.value)} />
      ) : (
        <input id={id} aria-label={id ? undefined : label} value={typeof value === 'string' ? value : ''} onInput={(event) => set(event.currentTarget.value)} placeholder={typeof known.format === 'string' ? visible(known.format) : undefined} />
      );
    case 'number':
      return <NumberInput value={value} set={set} isWhole={of.isWhole} label={label} {...(id ? { id } : {})} />;
    case 'flag':
      return (
        <label class="check">
          <input id={id} type="checkbox" aria-label={id ? undefined : label} checked={value === true} onChange={(event) => set(event.currentTarget.checked)} /> {String(value === true)}
        </label>
      );
    case 'choice':
      return (
        <select id={id} aria-label={id ? undefined : label} value={String(of.values.findIndex((option) => option === value))} onChange={(event) => set(of.values[Number(event.currentTarget.value)])}>
          {!of.values.includes(value) && <option value="-1">choose</option>}
          {of.values.map((option, index) => (
            <option value={index}>{visible(typeof option === 'string' ? option : JSON.stringify(option))}</option>
          ))}
        </select>
      );
    case 'object':
      return <ObjectInput fields={of.fields} root={root} value={value} set={set} />;
    case 'list':
      return <ListInput item={of.item} root={root} value={value} set={set} label={label} />;
    case 'union':
      return <UnionInput options={of.options} root={root} value={value} set={set} label={label} {...(id ? { id } : {})} />;
    case 'json':
      return <JsonInput value={value} set={set} label={label} {...(id ? { id } : {})} />;
  }
}

/** Keeps what is typed until it is a number; `1e` is not turned into `1`. */
function NumberInput({ value, set, isWhole, label, id }: { value: unknown; set: (value: unknown) => void; isWhole: boolean; label: string; id?: string }) {
  const [typed, setTyped] = useState<string>();
  const shown = typed !== undefined && Number(typed) !== value ? typed : typeof value === 'number' ? String(value) : '';
  const isBad = typed !== undefined && typed.trim() !== '' && !Number.isFinite(Number(typed));
  return (
    <input
      id={id}
      aria-label={id ? undefined : label}
      inputMode={isWhole ? 'numeric' : 'decimal'}
      class="mono"
      value={shown}
      aria-invalid={isBad}
      onInput={(event) => {
        const text = event.currentTarget.value;
        setTyped(text);
        if (text.trim() !== '' && Number.isFinite(Number(text))) set(Number(text));
      }}
    />
  );
}

function ObjectInput({ fields, root, value, set }: { fields: SchemaField[]; root: Schema; value: unknown; set: (value: unknown) => void }) {
  const record = typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
  const change = (name: string, to: unknown) => {
    const next: Record<string, unknown> = { ...record };
    if (to === undefined) delete next[name];
    else next[name] = to;
    set(next);
  };
  if (!fields.length) return <p class="dim">No arguments.</p>;
  return (
    <div class="form">
      {fields.map((field) => (
        <FieldInput key={field.name} field={field} root={root} value={record[field.name]} set={(to) => change(field.name, to)} />
      ))}
    </div>
  );
}

type State = 'out' | 'null' | 'value';

function FieldInput({ field, root, value, set }: { field: SchemaField; root: Schema; value: unknown; set: (value: unknown) => void }) {
  const id = useId();
  const known = resolve(field.schema, root);
  const canBeNull = takesNull(field.schema, root);
  const state: State = value === undefined ? 'out' : value === null && canBeNull ? 'null' : 'value';
  const states: [State, string][] = [...(field.isRequired && state !== 'out' ? [] : [['out', 'left out'] as [State, string]]), ...(canBeNull ? [['null', 'null'] as [State, string]] : []), ['value', 'value']];
  const choose = (to: State) => set(to === 'out' ? undefined : to === 'null' ? null : initial(field.schema, root));
  const isNested = ['object', 'list', 'union'].includes(shape(field.schema, root).kind);
  const body = state === 'value' && <Input schema={field.schema} root={root} value={value} set={set} label={field.name} id={id} />;
  return (
    <div class="field" data-field={field.name} data-state={state}>
      <div class="row">
        {isNested || state !== 'value' ? <span class="mono"><strong><T text={field.name} /></strong></span> : <label for={id} class="mono"><T text={field.name} /></label>}
        {field.isRequired && <span class="dim">required</span>}
        <span class="dim">{typeof known.type === 'string' ? known.type : ''}</span>
        <span class="grow" />
        {states.length > 1 && (
          <select class="state-pick" aria-label={`state of ${field.name}`} value={state} onChange={(event) => choose(event.currentTarget.value as State)}>
            {states.map(([of, word]) => (
              <option value={of}>{word}</option>
            ))}
          </select>
        )}
      </div>
      {isNested && body ? <div class="nested">{body}</div> : body}
      {typeof known.description === 'string' && <p class="hint"><T text={known.description} /></p>}
    </div>
  );
}

function ListInput({ item, root, value, set, label }: { item: Schema; root: Schema; value: unknown; set: (value: unknown) => void; label: string }) {
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  return (
    <div class="form">
      {items.map((entry, index) => (
        <div class="row">
          <div class="grow">
            <Input schema={item} root={root} value={entry} set={(to) => set(items.map((old, at) => (at === index ? to : old)))} label={`${label} ${index + 1}`} />
          </div>
          <Button kind="quiet" class="small" aria-label={`remove ${label} ${index + 1}`} onClick={() => set(items.filter((_, at) => at !== index))}>
            <Icon name="no" />
          </Button>
        </div>
      ))}
      <div>
        <Button class="small" onClick={() => set([...items, initial(item, root)])}>
          <Icon name="plus" /> Add
        </Button>
        {!items.length && <span class="dim"> empty list</span>}
      </div>
    </div>
  );
}

function UnionInput({ options, root, value, set, label, id }: { options: Schema[]; root: Schema; value: unknown; set: (value: unknown) => void; label: string; id?: string }) {
  const [picked, setPicked] = useState<number>();
  const at = picked ?? alternative(options, value, root);
  return (
    <div class="form">
      <select id={id} aria-label={id ? undefined : `kind of ${label}`} value={at} onChange={(event) => (setPicked(Number(event.currentTarget.value)), set(initial(options[Number(event.currentTarget.value)]!, root)))}>
        {options.map((option, index) => (
          <option value={index}>{visible(title(option, root, index))}</option>
        ))}
      </select>
      <Input schema={options[at]!} root={root} value={value} set={set} label={label} />
    </div>
  );
}

function JsonInput({ value, set, label, id }: { value: unknown; set: (value: unknown) => void; label: string; id?: string }) {
  const [typed, setTyped] = useState<string>();
  let isBad = false;
  try {
    if (typed !== undefined) JSON.parse(typed);
  } catch {
    isBad = true;
  }
  return (
    <>
      <textarea
        id={id}
        class="mono"
        aria-label={id ? undefined : `${label} as JSON`}
        aria-invalid={isBad}
        value={typed ?? JSON.stringify(value ?? null, null, 2)}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          try {
            set(JSON.parse(event.currentTarget.value));
          } catch {
            // Not JSON yet: the last value stays, and the field says so.
          }
        }}
      />
      <p class={`hint ${isBad ? 'bad' : ''}`}>{isBad ? 'not JSON yet' : 'as JSON'}</p>
    </>
  );
}
