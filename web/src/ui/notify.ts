// Desktop notifications of new questions: only if the person asked for them, only on the change, and
// without the arguments, which do not belong on a locked screen.
import { go, link } from '../lib/router';
import { visible } from '../lib/text';
import type { QuestionRow } from '../lib/types';

const KEY = 'ringfence.notify';

export function isWished(): boolean {
  return typeof Notification !== 'undefined' && Notification.permission === 'granted' && localStorage.getItem(KEY) === 'on';
}

/** Returns what is in force afterwards. */
export async function wish(isOn: boolean): Promise<boolean> {
  if (isOn && Notification.permission !== 'granted' && (await Notification.requestPermission()) !== 'granted') return false;
  localStorage.setItem(KEY, isOn ? 'on' : 'off');
  return isOn;
}

export function notify(question: QuestionRow): void {
  if (!isWished() || !document.hidden) return;
  const shown = new Notification(visible(question.sentence), { body: `risk ${question.risk.level}`, tag: question.id });
  shown.onclick = () => {
    window.focus();
    go(link('inbox', [question.id]));
    shown.close();
  };
}
