// Times, sizes and durations in words. Times are relative, with the exact one beside it.
import { signal } from '@preact/signals';

/** The time, in milliseconds, once a second while the page is seen. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
document.addEventListener('visibilitychange', () => (now.value = Date.now()));

export function milliseconds(time: number | string): number {
  return typeof time === 'number' ? time : Date.parse(time);
}

/** `40 s`, `3 min`, `2 h`, `5 d`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  if (hours < 48) return `${hours} h`;
  return `${Math.round(hours / 24)} d`;
}

/** How long ago, or how far ahead. */
export function relative(time: number | string, at: number): string {
  const difference = at - milliseconds(time);
  if (Number.isNaN(difference)) return '';
  if (Math.abs(difference) < 1500) return 'just now';
  return difference < 0 ? `in ${span(-difference)}` : `${span(difference)} ago`;
}

/** A time that was measured in microseconds. */
export function micros(us: number): string {
  return duration(us / 1000);
}

const pad = (number: number, digits = 2) => String(number).padStart(digits, '0');

/** `2026-11-17 23:35:02.120`, in the reader's zone. */
export function exact(time: number | string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${clock(time)}.${pad(date.getMilliseconds(), 3)}`;
}

/** `23:35:02`. */
export function clock(time: number | string): string {
  const date = new Date(time);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** `12 ms`, `1.4 s`, `350 µs`. */
export function duration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1000).toFixed(1)} s`;
  return span(ms);
}

/** `512 B`, `1.2 KB`, `4.0 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} KB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export function number(value: number): string {
  return value.toLocaleString('en');
}
