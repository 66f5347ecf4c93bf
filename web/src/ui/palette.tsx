// Everything by its name: pages, tools, callers, calls, actions. Opened with Ctrl K or ⌘K.
import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useResource } from '../lib/resource';
import { go, link } from '../lib/router';
import type { ToolRow } from '../lib/types';
import { Icon, T } from './common';
import { PAGES } from './frame';

export const isPaletteOpen = signal(false);

addEventListener('keydown', (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    isPaletteOpen.value = !isPaletteOpen.value;
  }
});

interface Item {
  icon: string;
  text: string;
  hint: string;
  to: string;
}

const ACTIONS: Item[] = [
  { icon: 'plus', text: 'New tool', hint: 'action', to: link('tools', ['new']) },
  { icon: 'plus', text: 'Add a server', hint: 'action', to: link('servers', ['add']) },
  { icon: 'ok', text: 'Verify the audit chain', hint: 'action', to: link('audit', [], { verify: 1 }) },
  { icon: 'tools', text: 'Which tools are exposed', hint: 'action', to: link('tools', [], { drawer: 'exposure' }) },
  { icon: 'inspector', text: 'Script scratchpad', hint: 'action', to: link('inspector', [], { mode: 'script' }) },
  { icon: 'policy', text: 'Edit and rehearse the rules', hint: 'action', to: link('policy', ['edit']) },
];
const SHOWN_MAX = 40;
const CALL = /^[0-9a-f-]{8,36}$/i;

/** Rows whose text holds all typed words, those that begin with them first. */
export function matches<I extends { text: string }>(items: I[], typed: string): I[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = items.filter((item) => words.every((word) => item.text.toLowerCase().includes(word)));
  const rank = (item: I) => (item.text.toLowerCase().startsWith(words[0] ?? '') ? 0 : 1);
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, SHOWN_MAX);
}

export function Palette() {
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  const tools = useResource<{ items: ToolRow[] }>('/tools');
  const callers = useResource<{ items: { name: string }[] }>('/callers');
  useEffect(() => {
    input.current?.focus();
    return () => before.current?.focus();
  }, []);
  const all = useMemo<Item[]>(
    () => [
      ...PAGES.map(({ id, title }) => ({ icon: id, text: title, hint: 'page', to: link(id) })),
      ...ACTIONS,
      ...(tools.data?.items ?? []).map((tool) => ({ icon: 'tools', text: tool.name, hint: `tool ${tool.risk.level}`, to: link('tools', [tool.name]) })),
      ...(callers.data?.items ?? []).map((caller) => ({ icon: 'callers', text: caller.name, hint: 'caller', to: link('callers', [caller.name]) })),
    ],
    [tools.data, callers.data],
  );
  const items = matches(all, typed);
  if (CALL.test(typed.trim())) items.unshift({ icon: 'audit', text: typed.trim(), hint: 'call', to: link('audit', [typed.trim()]) });
  const pick = (item: Item | undefined) => {
    if (!item) return;
    isPaletteOpen.value = false;
    go(item.to);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((at + step + items.length) % Math.max(1, items.length));
    } else if (event.key === 'Enter') pick(items[at]);
    else if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault();
      isPaletteOpen.value = false;
    }
  };
  useEffect(() => document.getElementById(`palette-${at}`)?.scrollIntoView({ block: 'nearest' }), [at]);
  return (
    <div class="veil" onClick={(event) => event.target === event.currentTarget && (isPaletteOpen.value = false)}>
      <div class="palette fresh" role="dialog" aria-modal="true" aria-label="Command palette">
        <input
          ref={input}
          value={typed}
          onInput={(event) => (setTyped(event.currentTarget.value), setAt(0))}
          onKeyDown={press}
          placeholder="Page, tool, caller, call id or action"
          role="combobox"
          aria-label="Go to"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={items.length ? `palette-${at}` : undefined}
          autocomplete="off"
          spellcheck={false}
        />
        <ul id="palette-list" role="listbox" aria-label="Results">
          {items.map((item, index) => (
            <li id={`palette-${index}`} role="option" aria-selected={index === at} onClick={() => pick(item)} onMouseMove={() => at !== index && setAt(index)}>
              <Icon name={item.icon} />
              <span class="grow"><T text={item.text} /></span>
              <span class="dim">{item.hint}</span>
            </li>
          ))}
        </ul>
        {!items.length && <p class="state dim">&nbsp; Nothing is called that.</p>}
      </div>
    </div>
  );
}
