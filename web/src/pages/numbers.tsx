// How much, how fast, how often refused, over time.
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { path } from '../lib/api';
import { clock, duration, exact, number } from '../lib/format';
import { useResource } from '../lib/resource';
import { go, link, route, withQuery } from '../lib/router';
import { Empty, Failed, Loading, T } from '../ui/common';
import { Page } from '../ui/frame';

interface Numbers {
  fromMs: number;
  toMs: number;
  bucketMs: number;
  times: number[];
  calls: number[];
  refused: number[];
  failed: number[];
  p50Us: (number | null)[];
  p90Us: (number | null)[];
  p99Us: (number | null)[];
  reasons: { code: string; count: number; meaning: string | null }[];
  rows: { name: string; calls: number; done: number; refused: number; failed: number; p50Us: number | null; p90Us: number | null; p99Us: number | null }[];
  approvals: { count: number; answered: number; p50Ms: number | null; p90Ms: number | null; maxMs: number | null };
  total: number;
  cut: boolean;
}

const us = (value: number | null) => (value === null ? '–' : duration(value / 1000));
const ms = (value: number | null) => (value === null ? '–' : duration(value));

export default function NumbersPage() {
  const { query } = route.value;
  const since = query.get('since') ?? '24h';
  const by = query.get('by') === 'caller' ? 'caller' : 'tool';
  const numbers = useResource<Numbers>(path(['numbers'], { since, by }));
  const facts = numbers.data;
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  return (
    <Page
      title="Numbers"
      actions={
        <select class="state-pick" aria-label="time" value={since} onChange={(event) => go(withQuery({ since: event.currentTarget.value }))}>
          <option value="1h">last hour</option>
          <option value="24h">last day</option>
          <option value="7d">last week</option>
          <option value="30d">last month</option>
        </select>
      }
    >
      {!facts && (numbers.error ? <Failed error={numbers.error} retry={numbers.reload} /> : <Loading what="the numbers" />)}
      {facts && facts.total === 0 && (
        <Empty title="No call in this time">
          <p>Choose a longer time, or <a href={link('inspector')}>call a tool</a>.</p>
        </Empty>
      )}
      {facts && facts.total > 0 && (
        <div class="cards" data-test="numbers">
          <section class="card full">
            <div class="figures">
              <Figure value={number(facts.total)} label="calls" />
              <Figure value={number(sum(facts.refused))} label="refused" />
              <Figure value={number(sum(facts.failed))} label="failed" />
              <Figure value={number(facts.approvals.count)} label="questions asked" />
              <Figure value={ms(facts.approvals.p50Ms)} label="median wait for an answer" />
              <Figure value={ms(facts.approvals.maxMs)} label="longest wait" />
            </div>
            {facts.cut && <p class="hint">Only the newest calls are counted: there are too many in this time.</p>}
          </section>
          <section class="card full">
            <h2>Calls over time</h2>
            <Chart times={facts.times} series={[['calls', facts.calls, '--accent'], ['refused', facts.refused, '--red'], ['failed', facts.failed, '--amber']]} words={number} label="calls, refused and failed over time" />
          </section>
          <section class="card full">
            <h2>Time of a call</h2>
            <Chart times={facts.times} series={[['median', facts.p50Us, '--accent'], ['90 %', facts.p90Us, '--blue'], ['99 %', facts.p99Us, '--amber']]} words={(value) => duration(value / 1000)} label="latency percentiles over time" />
          </section>
          <section class="card full">
            <div class="row">
              <h2>By {by}</h2>
              <span class="grow" />
              <a class="button small quiet" href={withQuery({ by: by === 'tool' ? 'caller' : undefined })}>
                By {by === 'tool' ? 'caller' : 'tool'}
              </a>
            </div>
            <div class="table-scroll" tabIndex={0} role="region" aria-label={`by ${by}`}>
              <table>
                <thead>
                  <tr>
                    <th>Name</th>
                    {['Calls', 'Refused', 'Failed', 'Median', '90 %', '99 %'].map((head) => (
                      <th class="number">{head}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {facts.rows.map((row) => (
                    <tr>
                      <td><a href={link('audit', [], { [by]: row.name, since })}><T text={row.name} /></a></td>
                      <td class="number">{number(row.calls)}</td>
                      <td class="number">{number(row.refused)}</td>
                      <td class="number">{number(row.failed)}</td>
                      <td class="number">{us(row.p50Us)}</td>
                      <td class="number">{us(row.p90Us)}</td>
                      <td class="number">{us(row.p99Us)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </section>
          {facts.reasons.length > 0 && (
            <section class="card full">
              <h2>Why calls were refused</h2>
              <table>
                <tbody>
                  {facts.reasons.map((reason) => (
                    <tr>
                      <td class="number">{number(reason.count)}</td>
                      <td><a href={link('audit', [], { reason: reason.code, since })}><code>{reason.code}</code></a></td>
                      <td><T text={reason.meaning} /></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          )}
        </div>
      )}
    </Page>
  );
}

function Figure({ value, label }: { value: string; label: string }) {
  return (
    <div class="figure">
      <b>{value}</b>
      <span class="dim">{label}</span>
    </div>
  );
}

/** A time on the axis: the hour within two days, else the day. */
function tick(time: number, times: number[]): string {
  const isShort = (times.at(-1) ?? 0) - (times[0] ?? 0) <= 48 * 3600 * 1000;
  return isShort ? clock(time).slice(0, 5) : exact(time).slice(5, 10);
}

type Series = [string, (number | null)[], string];

/** A chart; the table below it has the same numbers for those who cannot see it. */
/** Whether values stand alone: between two gaps there is no line to see. */
function isSparse(series: Series[]): boolean {
  return series.some(([, values]) => values.some((value, index) => value !== null && (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null));
}

function Chart({ times, series, words, label }: { times: number[]; series: Series[]; words: (value: number) => string; label: string }) {
  const host = useRef<HTMLDivElement>(null);
  const key = JSON.stringify([times, series]);
  useEffect(() => {
    let plot: uPlot | undefined;
    let isGone = false;
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const draw = () =>
      void import('uplot').then(({ default: Plot }) => {
        if (isGone || !host.current) return;
        plot?.destroy();
        const probe = document.createElement('span');
        host.current.append(probe);
        // A canvas knows no variables: the colour is asked of an element that has it.
        const colour = (name: string) => {
          probe.style.color = `var(${name})`;
          return getComputedStyle(probe).color;
        };
        const axis = { stroke: colour('--dim'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line') }, font: '12px system-ui' };
        plot = new Plot(
          {
            width: host.current.clientWidth,
            height: 200,
            series: [{}, ...series.map(([name, , tone]) => ({ label: name, stroke: colour(tone), width: 1.5, points: { show: times.length < 3 || isSparse(series), size: 5 }, value: (_: uPlot, value: number | null) => (value === null ? '–' : words(value)) }))],
            axes: [{ ...axis, values: (_: uPlot, values: number[]) => values.map((value) => tick(value * 1000, times)) }, { ...axis, size: 64, values: (_: uPlot, values: number[]) => values.map(words) }],
            scales: { y: { range: (_u: uPlot, _low: number, high: number) => [0, Math.max(high, 1) * 1.05] } },
          },
          [times.map((time) => time / 1000), ...series.map(([, values]) => values)],
          host.current,
        );
        probe.remove();
      });
    draw();
    const resize = new ResizeObserver(() => host.current && plot?.setSize({ width: host.current.clientWidth, height: 200 }));
    if (host.current) resize.observe(host.current);
    scheme.addEventListener('change', draw);
    return () => {
      isGone = true;
      resize.disconnect();
      scheme.removeEventListener('change', draw);
      plot?.destroy();
    };
  }, [key]);
  return <div class="chart" ref={host} role="img" aria-label={label} />;
}
