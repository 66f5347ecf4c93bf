// A list of any length. Only the rows near the screen are in the page; each says its place and how many there are,
// so that a screen reader knows the whole. The row with the focus stays wherever the list is scrolled to, with its
// neighbours, so that keys go on from it.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { place, type Range, sameRange, shown } from '../lib/window';

/** What a row is high before one was measured. */
const FIRST_HEIGHT_PX = 56;
/** Rows before the end at which more are asked for. */
const NEAR_END = 60;

interface Props<T> {
  label: string;
  count: number;
  item: (index: number) => T;
  keyOf: (item: T) => string;
  row: (item: T) => ComponentChildren;
  /** Changes with the items, and only with them. */
  version: unknown;
  /** The key of the row that is open. */
  current?: string | undefined;
  /** Rows that came on top since the list began: what a person reads does not move away under them. */
  onTop?: number;
  /** Whether there are more rows than `count`; then the end asks for them. */
  more?: (() => void) | undefined;
}

export function Rows<T>({ label, count, item, keyOf, row, version, current, onTop = 0, more }: Props<T>) {
  const box = useRef<HTMLUListElement>(null);
  const [height, setHeight] = useState(FIRST_HEIGHT_PX);
  const [range, setRange] = useState<Range>([0, 32]);
  const [held, setHeld] = useState<string>();
  const look = useRef(() => {});
  look.current = () => {
    const list = box.current;
    if (!list) return;
    const next = place(list.getBoundingClientRect().top, innerHeight, height, count);
    setRange((old) => (sameRange(old, next) ? old : next));
  };
  useEffect(() => {
    const scrolled = () => look.current();
    // Which box scrolls depends on the width of the screen; scrolling does not bubble, but it can be captured.
    addEventListener('scroll', scrolled, { capture: true, passive: true });
    addEventListener('resize', scrolled);
    return () => {
      removeEventListener('scroll', scrolled, { capture: true });
      removeEventListener('resize', scrolled);
    };
  }, []);
  const before = useRef(onTop);
  useLayoutEffect(() => {
    const came = onTop - before.current;
    before.current = onTop;
    const list = box.current;
    if (came > 0 && list && list.getBoundingClientRect().top < 0) scroller(list).scrollTop += came * height;
  }, [onTop]);
  useLayoutEffect(() => {
    // A person may have asked for larger letters: rows are as high as they are.
    const measured = box.current?.firstElementChild?.getBoundingClientRect().height;
    if (measured && Math.abs(measured - height) > 0.5) setHeight(measured);
    look.current();
  }, [count, height]);
  useEffect(() => {
    if (more && range[1] >= count - NEAR_END) more();
  }, [range, count, more]);
  const indexOf = (key: string | undefined): number | undefined => {
    for (let index = 0; key !== undefined && index < count; index++) if (keyOf(item(index)) === key) return index;
    return undefined;
  };
  const kept = useMemo(() => [indexOf(held), indexOf(current)], [held, current, version, count]);
  return (
    <ul
      class="rows"
      ref={box}
      aria-label={label}
      style={{ height: `${count * height}px` }}
      onFocusIn={(event) => setHeld((event.target as HTMLElement).closest<HTMLElement>('li')?.dataset.key)}
      onFocusOut={(event) => !event.currentTarget.contains(event.relatedTarget as Node | null) && setHeld(undefined)}
    >
      {shown(range, count, kept).map((index) => {
        const key = keyOf(item(index));
        return (
          <li key={key} data-key={key} style={{ top: `${index * height}px` }} aria-posinset={index + 1} aria-setsize={more ? -1 : count}>
            {row(item(index))}
          </li>
        );
      })}
    </ul>
  );
}

/** The box that scrolls this element. */
function scroller(element: HTMLElement): Element {
  for (let at = element.parentElement; at; at = at.parentElement) if (/auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  return document.scrollingElement ?? document.documentElement;
}
