// Limits: shared limits and budgets, stages with limits of their own, and quotas. Each shows its use, its room and its
// queue.

import type { Allowed, Limits as Answer, LimitedStage, Quota, SharedLimit, Throttle } from '../../operators/answers.ts';
import { count, countOf, dollars, many, span } from '../../operators/numbers.ts';
import { Ago, databaseNow, Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { ActionButton, throttleActions } from './actions.tsx';
import { read } from './api.ts';
import { State } from './states.tsx';

export function Limits() {
  const limits = usePoll('limits', () => read<Answer>('limits'));
  return (
    <Fresh of={limits.value}>
      {({ limits, stages, quotas }) => (
        <>
          <h3>Shared limits and budgets</h3>
          <p class="hint">One bound over several stages, such as for a host, a service or an account.</p>
          <Shared limits={limits} stages={stages} />
          <h3>Stages with limits</h3>
          <p class="hint">Those with most to do stand first.</p>
          <Stages stages={stages.toSorted((a, b) => b.ready + b.in_flight - a.ready - a.in_flight)} />
          <h3>Quotas</h3>
          <p class="hint">What one tenant may start and spend in a while. Those who wait stand first.</p>
          <Quotas quotas={quotas} />
        </>
      )}
    </Fresh>
  );
}

/** A bar and its numbers: how much of what is allowed is used. */
function Used({ used, of, shown = count }: { used: number; of: number; shown?: (value: number) => string }) {
  const text = `${shown(used)} of ${shown(of)}`;
  return (
    <div class="used">
      <meter min={0} max={Math.max(of, 0.000001)} value={used} aria-label={text} /> {text}{' '}
      <span class={used >= of ? 'state warn' : 'hint'}>
        {used >= of ? <span>⧖ no room</span> : `room for ${shown(of - used)}`}
      </span>
    </div>
  );
}

const every = (seconds: number) => `every ${span(seconds * 1000)}`;

/** The rates, concurrency and back-pressure of a limit, in words. */
function Rates({ of: { rate, key_rate, concurrency, back_pressure } }: { of: Allowed }) {
  return (
    <>
      {rate && (
        <div>
          {many(rate.count, 'start')} in {span(rate.per_seconds * 1000)}
        </div>
      )}
      {key_rate && (
        <div>
          {count(key_rate.count)} of each key in {span(key_rate.per_seconds * 1000)}
        </div>
      )}
      {concurrency && (
        <div>
          {concurrency.limit === undefined ? 'turns' : `${count(concurrency.limit)} at once`} for each{' '}
          {concurrency.part}
          {concurrency.part && ' of '}
          <Words text={concurrency.column} most={60} />
        </div>
      )}
      {[back_pressure ?? []].flat().map(({ stage, backlog }) => (
        <div key={stage}>
          no more than {count(backlog)} {concurrency && 'of each '}before <Words text={stage} most={60} />
        </div>
      ))}
    </>
  );
}

function Throttled({ by: throttle }: { by: Throttle | null }) {
  if (!throttle) return null;
  return (
    <div>
      <State is="throttled" /> until <Moment at={throttle.until} />{' '}
      <Words text={[throttle.by && `by ${throttle.by}`, throttle.reason].filter(Boolean).join(': ')} most={200} />
    </div>
  );
}

function Shared({ limits, stages }: { limits: SharedLimit[]; stages: LimitedStage[] }) {
  const ready = (limit: string) => stages.filter(({ shared, ready: value }) => shared.includes(limit) && value > 0);
  return (
    <Table
      label="Shared limits and budgets"
      rows={limits}
      keyOf={({ limit }) => limit}
      none="There is no shared limit, or it is for who sees all pipelines."
      columns={[
        { name: 'Limit', cell: (l) => <b>{l.limit}</b> },
        {
          name: 'In work',
          cell: (l) =>
            l.today.max_in_flight === undefined ? (
              count(l.in_flight)
            ) : (
              <Used used={l.in_flight} of={l.today.max_in_flight} />
            ),
        },
        { name: 'Rates', cell: (l) => <Rates of={l.today} /> },
        { name: 'Spent', cell: (l) => <Budget limit={l} /> },
        {
          name: 'Backlog',
          cell: (l) => (
            <>
              {ready(l.limit).map((waits) => (
                <div key={`${waits.pipeline}.${waits.stage}`}>
                  <a href={to('pipeline', waits.pipeline, { stage: waits.stage })}>
                    {waits.pipeline}.{waits.stage}
                  </a>{' '}
                  {countOf(waits, 'ready')} ready
                </div>
              ))}
              {ready(l.limit).length === 0 && <span class="hint">none</span>}
            </>
          ),
        },
        {
          name: 'Pause or throttle',
          cell: (l) => (
            <>
              <Throttled by={l.throttle} />
              {l.paused_until && (
                <div>
                  <State is="waiting">refused</State> until <Moment at={l.paused_until} />
                </div>
              )}
            </>
          ),
        },
        { name: 'Actions', cell: (l) => <Actions limit={l} /> },
      ]}
    />
  );
}

function Budget({ limit: { today, spent_usd, spent_tokens, window_ends_at, spent_for } }: { limit: SharedLimit }) {
  const { usd, tokens, per_seconds } = today.spending ?? {};
  if (per_seconds === undefined) return <span class="hint">no budget</span>;
  return (
    <>
      {usd !== undefined && <Used used={spent_usd ?? 0} of={usd} shown={dollars} />}
      {tokens !== undefined && <Used used={spent_tokens ?? 0} of={tokens} shown={(value) => many(value, 'token')} />}
      <div class="hint">
        begins anew {every(per_seconds)}, next <Moment at={window_ends_at} />
      </div>
      {spent_for.length > 0 && (
        <div>
          <State is="alert">{`pays nothing more for ${spent_for.join(', ')}`}</State>
        </div>
      )}
    </>
  );
}

function Actions({ limit: { limit, stages, throttle, paused_until, keys } }: { limit: SharedLimit }) {
  const actions = throttleActions(
    { limit },
    !!throttle || !!paused_until || keys.length > 0,
    `Its stages start together no more than this, until the time is over: ${stages.join(', ')}.`,
    'What was declared holds again at once, and no service pauses it.',
  );
  return (
    <div class="actions">
      {actions.map((action, place) => (
        <ActionButton key={place} action={{ ...action, title: `${action.label} ${limit}` }} />
      ))}
    </div>
  );
}

function Stages({ stages }: { stages: LimitedStage[] }) {
  return (
    <Table
      label="Stages with limits"
      rows={stages}
      keyOf={({ pipeline, stage }) => `${pipeline}.${stage}`}
      none="No stage has a limit."
      columns={[
        {
          name: 'Stage',
          cell: ({ pipeline, stage }) => (
            <a href={to('pipeline', pipeline, { stage })}>
              {pipeline}.{stage}
            </a>
          ),
        },
        {
          name: 'In work',
          cell: ({ limits: { max_in_flight }, in_flight }) =>
            max_in_flight === undefined ? '–' : <Used used={in_flight} of={max_in_flight} />,
        },
        {
          name: 'Rates',
          cell: ({ limits, starts }) => (
            <>
              <Rates of={limits} />
              {starts !== null && <div class="hint">{count(starts)} may begin now</div>}
            </>
          ),
        },
        { name: 'Shared limits', cell: ({ shared }) => shared.join(', ') },
        { name: 'Ready', isNumber: true, by: (s) => s.ready, cell: (s) => countOf(s, 'ready') },
        {
          name: 'Oldest',
          isNumber: true,
          cell: ({ oldest_age, ready }) => (oldest_age === null || ready === 0 ? '–' : span(oldest_age * 1000)),
        },
        { name: 'Throttle', cell: ({ throttle }) => <Throttled by={throttle} /> },
      ]}
    />
  );
}

function Quotas({ quotas }: { quotas: Quota[] }) {
  return (
    <Table
      label="Quotas"
      rows={quotas}
      keyOf={({ pipeline, key, kind }) => `${pipeline} ${kind} ${key}`}
      none="Nobody has used anything of a quota in this window."
      columns={[
        { name: 'Pipeline', cell: ({ pipeline }) => <Words text={pipeline} most={60} /> },
        { name: 'Tenant', cell: ({ key }) => (key ? <Words text={key} most={80} /> : 'rows without one') },
        { name: 'Kind', cell: ({ kind }) => kind },
        {
          name: 'Used',
          cell: ({ used, allowed, kind }) => {
            const shown = kind === 'spending' ? dollars : count;
            return allowed === null ? shown(used) : <Used used={used} of={allowed} shown={shown} />;
          },
        },
        { name: 'Blocked', isNumber: true, cell: ({ quota_blocked }) => count(quota_blocked) },
        {
          name: 'Next start',
          cell: ({ next_at }) =>
            next_at && Date.parse(next_at) < databaseNow() ? <Ago at={next_at} /> : <Moment at={next_at} />,
        },
      ]}
    />
  );
}
