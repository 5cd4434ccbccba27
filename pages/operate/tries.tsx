// Two tries of a stage side by side: what each got, what it came to, and what differs.

import type { Run as Answer, Attempt, Payload, WholeAttempt } from '../../operators/answers.ts';
import { count, dollars, many, span } from '../../operators/numbers.ts';
import { saidOf } from '../../operators/remedies.ts';
import { visible } from '../../operators/visible.ts';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { ask, route } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { type Row, sideBySide } from './line-diff.ts';

const mostRows = 400;

/** A try with the attempts whose results were its input, by the name of their stage. */
interface Try {
  attempt: Attempt;
  inputs: Record<string, number>;
}

/** Finds what a try got: of each stage that it needs the newest result from before it. */
function tryOf({ stages, attempts }: Answer, attempt: Attempt): Try {
  const needs = stages.find(({ stage }) => stage === attempt.stage)?.needs ?? [];
  const found = needs.flatMap((need) => {
    const before = attempts.filter(
      ({ stage, state, attempt: id }) => stage === need && state === 'completed' && id < attempt.attempt,
    );
    return before.slice(-1).map(({ attempt: id }) => [need, id] as const);
  });
  return { attempt, inputs: Object.fromEntries(found) };
}

/** The two tries that the address names; without it, the last two of the stage that was tried again last. */
function chosen(tries: Attempt[], query: URLSearchParams): [Attempt, Attempt] | undefined {
  const named = (name: string) => tries.find(({ attempt }) => String(attempt) === query.get(name));
  const others = (of: Attempt | undefined) => tries.filter((one) => one.stage === of?.stage && one !== of);
  const earlier = (of: Attempt) => others(of).findLast(({ attempt }) => attempt < of.attempt);
  const newer = named('newer') ?? tries.findLast(earlier);
  const older = newer && (others(newer).find((one) => one === named('older')) ?? earlier(newer) ?? others(newer)[0]);
  return newer && older && [older, newer];
}

export function Tries({ run }: { run: Answer }) {
  // An attempt that was never begun has nothing to compare.
  const tries = run.attempts.filter(({ state }) => ['started', 'waiting', 'completed', 'failed'].includes(state));
  const pair = chosen(tries, route.value.query);
  if (!pair) return null;
  const [older, newer] = pair;
  const isOpen = route.value.query.has('newer');
  return (
    <>
      <h3>Comparison of tries</h3>
      <p class="actions">
        {isOpen ? (
          <Choice tries={tries} pair={pair} />
        ) : (
          <button type="button" onClick={() => ask({ older: older.attempt, newer: newer.attempt })}>
            Compare the last two of {newer.stage}
          </button>
        )}
      </p>
      {isOpen && <Comparison run={run} older={tryOf(run, older)} newer={tryOf(run, newer)} />}
    </>
  );
}

const nameOf = ({ stage, attempt, state, superseded }: Attempt) =>
  `${stage}, attempt ${attempt}, ${superseded ? 'superseded' : state}`;

/** Fields that choose the two; the older is of the newer's stage. */
function Choice({ tries, pair: [older, newer] }: { tries: Attempt[]; pair: [Attempt, Attempt] }) {
  const isTriedAgain = ({ stage }: Attempt) => tries.filter((one) => one.stage === stage).length > 1;
  const fields = [
    {
      name: 'older',
      label: 'Older try',
      is: older,
      of: tries.filter((a) => a.stage === newer.stage && a !== newer),
    },
    { name: 'newer', label: 'Newer try', is: newer, of: tries.filter(isTriedAgain) },
  ];
  return (
    <>
      {fields.map(({ name, label, is, of }) => (
        <span key={name}>
          <label for={`tries-${name}`}>{label}</label>
          <select
            id={`tries-${name}`}
            onChange={({ currentTarget }) => ask({ newer: newer.attempt, [name]: currentTarget.value })}
          >
            {of.map((one) => (
              <option key={one.attempt} value={one.attempt} selected={one === is}>
                {nameOf(one)}
              </option>
            ))}
          </select>
        </span>
      ))}
    </>
  );
}

/** Reads whole attempts, each once. */
async function readAll(ids: number[]): Promise<Map<number, WholeAttempt>> {
  const found = [...new Set(ids)].map(
    async (attempt) => [attempt, await read<WholeAttempt>('attempt', { attempt })] as const,
  );
  return new Map(await Promise.all(found));
}

function Comparison({ run, older, newer }: { run: Answer; older: Try; newer: Try }) {
  const ids = [older, newer].flatMap(({ attempt, inputs }) => [attempt.attempt, ...Object.values(inputs)]);
  const found = usePoll(`tries ${ids.join(' ')}`, () => readAll(ids));
  const promptOf = (one: Try) => run.turns.find(({ attempt }) => attempt === one.attempt.attempt)?.asked;
  return (
    <Fresh of={found.value}>
      {(whole) => {
        const of = (id: number | undefined) => (id === undefined ? undefined : whole.get(id));
        const [was, is] = [of(older.attempt.attempt), of(newer.attempt.attempt)];
        if (!was || !is) return null;
        const needs = [...new Set([...Object.keys(older.inputs), ...Object.keys(newer.inputs)])];
        return (
          <>
            <Facts older={was} newer={is} />
            {needs.map((need) => (
              <Texts
                key={need}
                name={`Input: the result of ${need}`}
                was={textOf(of(older.inputs[need])?.output)}
                is={textOf(of(newer.inputs[need])?.output)}
              />
            ))}
            <Texts name="Prompt" was={promptOf(older)} is={promptOf(newer)} />
            <Texts name="Result" was={textOf(was.output)} is={textOf(is.output)} />
            <Texts name="Error" was={errorOf(was)} is={errorOf(is)} />
            <p class="hint">
              {is.payloads
                ? 'No try keeps the values of the row that it read.'
                : 'Inputs, prompts and results are for operators who see payloads.'}
            </p>
          </>
        );
      }}
    </Fresh>
  );
}

const textOf = (payload: Payload | null | undefined) =>
  payload ? (payload.cut ?? JSON.stringify(payload.value, null, 1)) : undefined;

const errorOf = ({ error }: WholeAttempt) =>
  error ? [error.code, saidOf(error), error.hint].filter(Boolean).join('\n') : undefined;

const numberOf = (value: number | null | undefined, say: (given: number) => string) =>
  value === null || value === undefined ? '' : say(value);

/** The facts of a try that take one line each. */
const facts: [name: string, say: (one: WholeAttempt) => string][] = [
  ['State', ({ state, superseded }) => (superseded ? `${state}, superseded` : state)],
  ['Error', ({ error }) => error?.code ?? ''],
  ['Model', ({ usage }) => usage?.model ?? ''],
  ['Version of the prompt', ({ usage }) => usage?.prompt ?? ''],
  ['Tokens in', ({ usage }) => numberOf(usage?.input_tokens, count)],
  ['Tokens out', ({ usage }) => numberOf(usage?.output_tokens, count)],
  ['Cost', ({ usage }) => (usage?.unpriced || usage?.unreported ? 'unknown' : numberOf(usage?.cost_usd, dollars))],
  [
    'Took',
    ({ started_at, ended_at }) => (started_at && ended_at ? span(Date.parse(ended_at) - Date.parse(started_at)) : ''),
  ],
];

function Facts({ older, newer }: { older: WholeAttempt; newer: WholeAttempt }) {
  const rows = facts
    .map(([name, say]) => ({ name, was: say(older), is: say(newer) }))
    .filter(({ was, is }) => was !== '' || is !== '');
  return (
    <Table
      label="Differences"
      rows={rows}
      keyOf={({ name }) => name}
      columns={[
        {
          name: 'Value',
          cell: ({ name, was, is }) => (was === is ? name : <b>≠ {name} differs</b>),
        },
        { name: 'Older', cell: ({ was }) => <Words text={was || 'none'} most={300} /> },
        { name: 'Newer', cell: ({ is }) => <Words text={is || 'none'} most={300} /> },
      ]}
    />
  );
}

/** A text of both tries, the changed lines marked by a sign. */
function Texts({ name, was, is }: { name: string; was: string | undefined; is: string | undefined }) {
  if (was === undefined && is === undefined) return null;
  if (was === is) {
    return (
      <p>
        {name}: <span class="hint">the same in both, {many(was?.split('\n').length ?? 0, 'line')}</span>
      </p>
    );
  }
  const rows = sideBySide(was ?? '', is ?? '');
  return (
    <fieldset class="diff" aria-label={name}>
      <legend>{name}</legend>
      {rows.slice(0, mostRows).map((row, place) => (
        <Lines key={place} {...row} />
      ))}
      {rows.length > mostRows && <p class="hint">and {count(rows.length - mostRows)} more lines</p>}
    </fieldset>
  );
}

function Lines({ was, is, alike }: Row) {
  if (alike) return <p class="hint">⋯ {many(alike, 'line')} alike</p>;
  const line = (text: string | undefined, sign: string) =>
    text === undefined ? <code class="none" /> : <code>{sign + visible(text)}</code>;
  if (was === is) {
    return (
      <>
        {line(was, '\u2007 ')}
        <span aria-hidden="true">{line(is, '\u2007 ')}</span>
      </>
    );
  }
  return (
    <>
      {was === undefined ? line(was, '') : <del>{line(was, '− ')}</del>}
      {is === undefined ? line(is, '') : <ins>{line(is, '+ ')}</ins>}
    </>
  );
}
