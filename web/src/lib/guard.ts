// The last line: no text reaches the document with something in it that cannot be seen, whichever part of a page
// forgot <T>. Installed once, before anything is rendered. What an editor or a field holds is the person's to edit
// and stays as it is.
import { Fragment, options, type VNode } from 'preact';
import { hides, visible } from './text';

const SHOWN = ['title', 'aria-label', 'placeholder', 'alt', 'label'];

const shown = (value: unknown): unknown => {
  if (typeof value === 'string') return hides(value) ? visible(value, 'many') : value;
  return Array.isArray(value) && value.some((item) => typeof item === 'string' && hides(item)) ? value.map(shown) : value;
};

export function install(): void {
  const before = options.vnode;
  options.vnode = (vnode: VNode) => {
    if (typeof vnode.type === 'string' || vnode.type === Fragment) {
      const props = vnode.props as Record<string, unknown>;
      props.children = shown(props.children);
      for (const name of SHOWN) if (props[name] !== undefined) props[name] = shown(props[name]);
    }
    before?.(vnode);
  };
}
