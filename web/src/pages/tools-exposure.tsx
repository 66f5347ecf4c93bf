// Which tools are offered to clients: a preset, then names, tags and categories in or out, and the list that results.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { post, put } from '../lib/api';
import { useDeed, useResource } from '../lib/resource';
import { link } from '../lib/router';
import { canChange } from '../lib/session';
import type { DiffLine, Level } from '../lib/types';
import { Button, Diff, Failed, Field, Fold, Loading, Note, Risk, Section, T } from '../ui/common';

interface Selector {
  names: string[];
  tags: string[];
  categories: string[];
}
interface Facts {
  preset: string | null;
  presets: { name: string; description: string; tools?: string[] }[];
  auto: boolean;
  include: Selector;
  exclude: Selector;
  tools: { name: string; exposed: boolean; why: string; level: Level; category: string | null; tags: string[] }[];
  exposed: number;
  total: number;
  revision: string;
  diff?: DiffLine[];
  added?: string[];
  removed?: string[];
}
type Choice = Pick<Facts, 'preset' | 'auto' | 'include' | 'exclude'>;

export function Exposure() {
  const exposure = useResource<Facts>('/exposure', ['tools', 'settings']);
  const [choice, setChoice] = useState<Choice>();
  const [preview, setPreview] = useState<Facts>();
  const [find, setFind] = useState('');
  const look = useDeed(async (wish: Choice, revision: string) => setPreview(await post<Facts>('/exposure/preview', { ...wish, revision })));
  const apply = useDeed(async () => {
    const now = await put<Facts>('/exposure', { ...choice!, revision: exposure.data!.revision });
    exposure.set(now);
    setChoice(undefined);
    setPreview(undefined);
  });
  useEffect(() => {
    if (!choice || !exposure.data) return;
    const timer = setTimeout(() => void look.run(choice, exposure.data!.revision), 150);
    return () => clearTimeout(timer);
  }, [choice]);
  const shown = useMemo(() => (preview ?? exposure.data)?.tools.filter((tool) => tool.name.toLowerCase().includes(find.toLowerCase())), [preview, exposure.data, find]);
  if (!exposure.data) return exposure.error ? <Failed error={exposure.error} retry={exposure.reload} /> : <Loading what="the exposure" />;
  const facts = exposure.data;
  const now: Choice = choice ?? facts;
  const set = (change: Partial<Choice>) => setChoice({ preset: now.preset, auto: now.auto, include: now.include, exclude: now.exclude, ...change });
  const result = preview ?? facts;
  const toggle = (name: string, isExposed: boolean) => {
    const without = (list: string[]) => list.filter((other) => other !== name);
    set({
      include: { ...now.include, names: isExposed ? without(now.include.names) : [...without(now.include.names), name] },
      exclude: { ...now.exclude, names: isExposed ? [...without(now.exclude.names), name] : without(now.exclude.names) },
    });
  };
  // What the person ticked shows at once; the server's answer follows.
  const isOn = (tool: Facts['tools'][number]) => (choice?.exclude.names.includes(tool.name) ? false : choice?.include.names.includes(tool.name) ? true : tool.exposed);
  return (
    <article data-test="exposure-view">
      <div class="detail-head">
        <h2>Which tools are exposed</h2>
        <span class="tag">{result.exposed} of {result.total}</span>
      </div>
      <div class="form">
        <Field label="Preset" hint={<T text={facts.presets.find((preset) => preset.name === now.preset)?.description ?? 'no preset: only what is included below'} />}>
          {(id) => (
            <select id={id} disabled={!canChange.value} value={now.preset ?? ''} onChange={(event) => set({ preset: event.currentTarget.value || null })}>
              <option value="">none</option>
              {facts.presets.map((preset) => (
                <option value={preset.name}>
                  {preset.name}
                  {preset.tools && ` (${preset.tools.length})`}
                </option>
              ))}
            </select>
          )}
        </Field>
        <label class="check">
          <input type="checkbox" disabled={!canChange.value} checked={now.auto} onChange={(event) => set({ auto: event.currentTarget.checked })} /> Expose a tool of your own when it is published
        </label>
        <div class="form two">
          {(['include', 'exclude'] as const).map((side) => (
            <fieldset>
              <legend>{side === 'include' ? 'Also' : 'Never'}</legend>
              {(['names', 'tags', 'categories'] as const).map((kind) => (
                <Field label={kind}>
                  {(id) => (
                    <input
                      id={id}
                      class="mono"
                      disabled={!canChange.value}
                      defaultValue={now[side][kind].join(', ')}
                      key={now[side][kind].join()}
                      onChange={(event) => set({ [side]: { ...now[side], [kind]: event.currentTarget.value.split(',').map((word) => word.trim()).filter(Boolean) } })}
                    />
                  )}
                </Field>
              ))}
            </fieldset>
          ))}
        </div>
      </div>
      {look.error && <Failed error={look.error} />}
      {apply.error && <Failed error={apply.error} />}
      {choice && preview && (
        <Note kind="info" test="exposure-preview">
          <p>
            <strong>
              {preview.added?.length ?? 0} more, {preview.removed?.length ?? 0} fewer
            </strong>
          </p>
          {preview.added?.length ? <p>now also: {preview.added.slice(0, 30).map((name) => <><code><T text={name} /></code> </>)}{preview.added.length > 30 && `and ${preview.added.length - 30} more`}</p> : null}
          {preview.removed?.length ? <p>no longer: {preview.removed.slice(0, 30).map((name) => <><code><T text={name} /></code> </>)}{preview.removed.length > 30 && `and ${preview.removed.length - 30} more`}</p> : null}
          {preview.diff && (
            <Fold title="The change of ringfence.toml">
              <Diff lines={preview.diff} label="change of the settings" />
            </Fold>
          )}
          <div class="row">
            <Button kind="primary" class="small" isBusy={apply.isBusy} onClick={() => void apply.run()} test="apply-exposure">
              Apply
            </Button>
            <Button kind="quiet" class="small" onClick={() => (setChoice(undefined), setPreview(undefined))}>
              Leave as it is
            </Button>
          </div>
        </Note>
      )}
      <Section title="The result" aside={<input type="search" aria-label="Find in the list" placeholder="Find" value={find} onInput={(event) => setFind(event.currentTarget.value)} />}>
        <ul class="plain">
          {shown?.map((tool) => (
            <li class="row">
              <label class="check grow">
                <input type="checkbox" disabled={!canChange.value} checked={isOn(tool)} onChange={() => toggle(tool.name, isOn(tool))} data-test={`expose-${tool.name}`} />
                <Risk level={tool.level} /> <a href={link('tools', [tool.name])}><T text={tool.name} /></a> <span class="dim"><T text={tool.why} /></span>
              </label>
            </li>
          ))}
        </ul>
      </Section>
    </article>
  );
}
