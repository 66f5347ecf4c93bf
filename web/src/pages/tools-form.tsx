// The form of a tool document. Each field edits one value of the text and leaves the rest as it is.
import { useState } from 'preact/hooks';
import { post } from '../lib/api';
import * as json from '../lib/json';
import type { Checked } from '../lib/types';
import { Button, Field, Fold, Icon, Note, T } from '../ui/common';

export type Edit = (path: json.Path, value: unknown) => void;

interface Props {
  document: Record<string, unknown>;
  edit: Edit;
  checked: Checked | undefined;
  touch: () => void;
  text: string;
  name: string | undefined;
}

const TYPES = ['STRING', 'INTEGER', 'NUMBER', 'BOOLEAN', 'OBJECT', 'ARRAY'];
const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);
const text = (value: unknown) => (typeof value === 'string' ? value : '');
const record = (value: unknown) => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {});
const list = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : []);

export function DocumentForm(props: Props) {
  const { document, edit } = props;
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return <Note kind="error">A document is a JSON object.</Note>;
  return (
    <div class="form" data-test="form">
      <div class="form two">
        <Field label="Name">{(id) => <input id={id} class="mono" value={text(document.name)} onInput={(event) => edit(['name'], event.currentTarget.value)} spellcheck={false} data-test="name" />}</Field>
        <div class="form two">
          <Field label="Category">{(id) => <input id={id} value={text(document.category)} onInput={(event) => edit(['category'], event.currentTarget.value || undefined)} />}</Field>
          <Field label="Tags">
            {(id) => <input id={id} defaultValue={list(document.tags).join(', ')} key={list(document.tags).join()} onChange={(event) => edit(['tags'], words(event.currentTarget.value).length ? words(event.currentTarget.value) : undefined)} />}
          </Field>
        </div>
      </div>
      <Field label="Description" hint="The model reads this to decide when to use the tool. Say what it does, what it needs and what it returns.">
        {(id) => <textarea id={id} value={text(document.description)} onInput={(event) => edit(['description'], event.currentTarget.value)} data-test="description" />}
      </Field>
      <Params params={list(document.params)} edit={edit} />
      <Reach overrides={record(document.sandboxOverrides)} edit={edit} />
      <Approval {...props} />
      <Variables variables={list(document.staticVariables)} edit={edit} />
    </div>
  );
}

function Params({ params, edit }: { params: unknown[]; edit: Edit }) {
  return (
    <fieldset>
      <legend>Parameters</legend>
      {params.length > 0 && (
        <div class="param param-head" aria-hidden="true">
          <span>Name</span>
          <span>Type</span>
          <span>Description</span>
          <span>Test value</span>
          <span>Required</span>
          <span />
        </div>
      )}
      {params.map((raw, index) => {
        const param = record(raw);
        const label = (what: string) => `${what} of parameter ${text(param.name) || index + 1}`;
        return (
          <div class="param">
            <input class="mono" aria-label={label('name')} value={text(param.name)} onInput={(event) => edit(['params', index, 'name'], event.currentTarget.value)} spellcheck={false} />
            <select aria-label={label('type')} value={text(param.type)} onChange={(event) => edit(['params', index, 'type'], event.currentTarget.value)}>
              {TYPES.map((type) => (
                <option>{type}</option>
              ))}
            </select>
            <input aria-label={label('description')} value={text(param.description)} onInput={(event) => edit(['params', index, 'description'], event.currentTarget.value || undefined)} placeholder="description" />
            <input class="mono" aria-label={label('test value')} value={text(param.testValue)} onInput={(event) => edit(['params', index, 'testValue'], event.currentTarget.value || undefined)} placeholder="test value" />
            <label class="check">
              <input type="checkbox" aria-label={label('required')} checked={param.required === true} onChange={(event) => edit(['params', index, 'required'], event.currentTarget.checked)} /> <span class="show-small">required</span>
            </label>
            <Button kind="quiet" class="small" aria-label={`remove parameter ${text(param.name)}`} onClick={() => edit(['params', index], undefined)}>
              <Icon name="no" />
            </Button>
          </div>
        );
      })}
      <Button class="small" kind="quiet" onClick={() => edit(['params'], [...params, { name: `value${params.length + 1}`, type: 'STRING', required: true, testValue: 'text' }])} test="add-param">
        <Icon name="plus" /> Add a parameter
      </Button>
    </fieldset>
  );
}

function Reach({ overrides, edit }: { overrides: Record<string, unknown>; edit: Edit }) {
  const set = (name: string, value: unknown) => edit(['sandboxOverrides', name], value);
  const hosts = list(overrides.hostsAllow);
  const mode = text(overrides.networkMode);
  return (
    <fieldset>
      <legend>What it may reach</legend>
      <div class="form two">
        <Field label="Network" hint="Left alone, the operator's baseline applies.">
          {(id) => (
            <select id={id} value={mode} onChange={(event) => set('networkMode', event.currentTarget.value || undefined)} data-test="network">
              <option value="">as the operator set it</option>
              <option value="blocked">none</option>
              <option value="allowlist">only listed hosts</option>
              <option value="strict">any public host</option>
              <option value="open">any host, private ones too</option>
            </select>
          )}
        </Field>
        <Field label="Hosts" hint="One or more, such as api.example.com or *.example.com">
          {(id) => (
            <input
              id={id}
              class="mono"
              defaultValue={hosts.join(' ')}
              key={hosts.join()}
              spellcheck={false}
              onChange={(event) => set('hostsAllow', words(event.currentTarget.value).length ? words(event.currentTarget.value) : undefined)}
              data-test="hosts"
            />
          )}
        </Field>
      </div>
      <div class="row">
        {[
          ['fileRead', 'reads files'],
          ['fileWrite', 'writes files'],
          ['destructive', 'destroys what cannot be had back'],
        ].map(([field, label]) => (
          <label class="check">
            <input type="checkbox" checked={overrides[field!] === true} onChange={(event) => set(field!, event.currentTarget.checked ? true : undefined)} data-test={field} /> {label}
          </label>
        ))}
      </div>
      {(overrides.fileRead === true || overrides.fileWrite === true || overrides.fsBasePath !== undefined) && (
        <Field label="Folder" hint="The one folder its files lie in; empty means the workspace.">
          {(id) => <input id={id} class="mono" value={text(overrides.fsBasePath)} onInput={(event) => set('fsBasePath', event.currentTarget.value || undefined)} />}
        </Field>
      )}
    </fieldset>
  );
}

const MODES: [string, string][] = [
  ['DISABLED', 'no approval'],
  ['AUTO_APPROVE', 'asks from a risk level on'],
  ['REQUIRED', 'asks before every call'],
];

/** Lowering oversight asks once more and says what follows; raising it does not. */
function Approval({ document, edit, touch, text: whole, name }: Props) {
  const human = record(document.humanInTheLoop);
  const mode = text(human.mode) || 'DISABLED';
  const [asked, setAsked] = useState<{ mode: string; words: string }>();
  const rank = (of: string) => MODES.findIndex(([id]) => id === of);
  const choose = async (wished: string) => {
    touch();
    if (rank(wished) >= rank(mode)) {
      setAsked(undefined);
      edit(['humanInTheLoop', 'mode'], wished);
      return;
    }
    let words = `${MODES[rank(wished)]![1]} instead of ${MODES[rank(mode)]![1]}: calls may run that no person has seen.`;
    try {
      const checked = await post<Checked>('/tools/check', { document: json.set(whole, ['humanInTheLoop', 'mode'], wished), ...(name ? { name } : {}) });
      if (checked.oversight?.words) words = checked.oversight.words;
    } catch {
      // The sentence above stands.
    }
    setAsked({ mode: wished, words });
  };
  return (
    <fieldset>
      <legend>Approval</legend>
      <div class="form two">
        <Field label="Before a call">
          {(id) => (
            <select id={id} value={asked?.mode ?? mode} onChange={(event) => void choose(event.currentTarget.value)} data-test="approval">
              {MODES.map(([value, label]) => (
                <option value={value}>{label}</option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Question" hint="{toolName}, {args} and {args.path} are filled in.">
          {(id) => <input id={id} value={text(human.promptTemplate)} onInput={(event) => edit(['humanInTheLoop', 'promptTemplate'], event.currentTarget.value || undefined)} />}
        </Field>
      </div>
      {asked && (
        <Note kind="warn" test="oversight">
          <p>
            <strong>Reduce human oversight?</strong> <T text={asked.words} />
          </p>
          <div class="row">
            <Button class="small" kind="danger" onClick={() => (edit(['humanInTheLoop', 'mode'], asked.mode), setAsked(undefined))} test="lower">
              Reduce it
            </Button>
            <Button class="small" onClick={() => setAsked(undefined)}>
              Keep it
            </Button>
          </div>
        </Note>
      )}
    </fieldset>
  );
}

function Variables({ variables, edit }: { variables: unknown[]; edit: Edit }) {
  return (
    <Fold title={`Variables (${variables.length})`} isOpen={variables.length > 0}>
      <p class="hint">Values the code reads and the model never sees; {'${NAME}'} takes a secret by its name.</p>
      {variables.map((raw, index) => {
        const [name = '', value = ''] = Object.entries(record(raw))[0] ?? [];
        return (
          <div class="row">
            <input class="mono grow" aria-label={`name of variable ${index + 1}`} value={name} onInput={(event) => edit(['staticVariables', index], { [event.currentTarget.value]: value })} spellcheck={false} />
            <input class="mono grow" aria-label={`value of variable ${name}`} value={text(value)} onInput={(event) => edit(['staticVariables', index, name], event.currentTarget.value)} spellcheck={false} />
            <Button kind="quiet" class="small" aria-label={`remove variable ${name}`} onClick={() => edit(['staticVariables', index], undefined)}>
              <Icon name="no" />
            </Button>
          </div>
        );
      })}
      <Button class="small" kind="quiet" onClick={() => edit(['staticVariables'], [...variables, { [`variable${variables.length + 1}`]: '${NAME}' }])}>
        <Icon name="plus" /> Add a variable
      </Button>
    </Fold>
  );
}
