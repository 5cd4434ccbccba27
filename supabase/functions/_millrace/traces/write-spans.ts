import { createHash } from 'node:crypto';
import type { EndedRun, TracedAttempt } from './trace-rows.ts';

type Value = string | number | boolean | null | undefined;
type Attributes = Record<string, Value>;

interface Link {
  traceId: string;
  spanId: string;
  attributes: KeyValue[];
}
interface KeyValue {
  key: string;
  value: { stringValue: string } | { intValue: string } | { doubleValue: number } | { boolValue: boolean };
}

/** A span in OTLP's JSON form. */
export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: KeyValue[];
  links?: Link[];
  status: { code?: number; message?: string };
}

const INTERNAL = 1;
const CLIENT = 3;
const CONSUMER = 5;
const ERROR = 2;
/** Names in the place of a service: attempts that wait for children, a decision or a person have no job. */
const ownServices = ['children', 'decision', 'by_hand'];

/**
 * Writes a request of OTLP/HTTP in JSON with the spans of runs that have ended: one for each run, stage, attempt and job. Ids
 * derive from those of the rows, so that a run that is sent twice has the same spans twice.
 */
export function writeTraces(pipeline: string, runs: EndedRun[], service: string) {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': service, 'millrace.pipeline': pipeline }) },
        scopeSpans: [{ scope: { name: 'millrace' }, spans: runs.flatMap((run) => spansOf(pipeline, run)) }],
      },
    ],
  };
}

/**
 * The span of an attempt. Requests to services carry its id in `traceparent` (see traceHeaders()), so that their spans become
 * its children.
 */
const attemptSpan = (attempt: number) => attempt.toString(16).padStart(16, '0');

/** Returns the span id of anything but an attempt. Its first digit is 8 or more, which no attempt's is. */
function spanId(what: string): string {
  const digest = createHash('sha256').update(what).digest('hex');
  return (8 + (Number.parseInt(digest.slice(0, 1), 16) % 8)).toString(16) + digest.slice(1, 16);
}
const runSpan = (run: number) => spanId(`run ${run}`);
const traceIdOf = (uuid: string) => uuid.replaceAll('-', '').toLowerCase();
const nanos = (micros: number) => `${micros}000`;

function spansOf(pipeline: string, run: EndedRun): Span[] {
  const traceId = traceIdOf(run.trace);
  const stages = [...new Set(run.attempts.map(({ stage }) => stage))];
  return [
    spanOfRun(pipeline, run, traceId),
    ...stages.flatMap((stage) => {
      const attempts = run.attempts.filter((attempt) => attempt.stage === stage);
      const span = spanOfStage(run, stage, attempts, traceId);
      return [span, ...attempts.flatMap((attempt) => spansOfAttempt(attempt, span))];
    }),
  ];
}

function spanOfRun(pipeline: string, run: EndedRun, traceId: string): Span {
  const parent = run.parent && { traceId: traceIdOf(run.parent.trace), spanId: attemptSpan(run.parent.attempt) };
  const origin = parent ?? writerOf(run.writer);
  const isWithin = origin?.traceId === traceId;
  return {
    traceId,
    spanId: runSpan(run.run),
    ...(origin && isWithin && { parentSpanId: origin.spanId }),
    name: pipeline,
    kind: INTERNAL,
    startTimeUnixNano: nanos(run.created),
    endTimeUnixNano: nanos(run.finished),
    attributes: attributesOf({
      'millrace.run': run.run,
      'millrace.entity': run.entity,
      'millrace.status': run.status,
      'millrace.ended_as': run.ended_as,
      'millrace.parent_run': run.parent?.run,
      'error.type': run.code,
    }),
    ...(origin && { links: [linkTo(origin, parent ? 'parent' : 'writer')] }),
    status: run.status === 'failed' ? { code: ERROR, message: run.code ?? 'failed' } : {},
  };
}

/** Reads a traceparent of W3C's Trace Context; null for any other text. */
function writerOf(traceparent: string | null): { traceId: string; spanId: string } | null {
  const [, traceId = '', id = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/.exec(traceparent ?? '') ?? [];
  return /[1-9a-f]/.test(traceId) && /[1-9a-f]/.test(id) ? { traceId, spanId: id } : null;
}

const linkTo = (span: { traceId: string; spanId: string }, relation: string): Link => ({
  ...span,
  attributes: attributesOf({ 'millrace.relation': relation }),
});

/** Returns the span of a stage, from its first attempt to the end of its last one. The newest attempt gives the state. */
function spanOfStage(run: EndedRun, stage: string, attempts: TracedAttempt[], traceId: string): Span {
  const newest = attempts.findLast(({ superseded }) => !superseded);
  return {
    traceId,
    spanId: spanId(`run ${run.run} ${stage}`),
    parentSpanId: runSpan(run.run),
    name: stage,
    kind: INTERNAL,
    startTimeUnixNano: nanos(Math.min(...attempts.map(({ created }) => created))),
    endTimeUnixNano: nanos(Math.max(...attempts.map(endOf))),
    attributes: attributesOf({
      'millrace.stage': stage,
      'millrace.state': newest?.state,
      'millrace.attempts': attempts.length,
    }),
    status: newest ? statusOf(newest) : {},
  };
}

function spansOfAttempt(attempt: TracedAttempt, stage: Span): Span[] {
  const { traceId } = stage;
  const start = attempt.started ?? attempt.created;
  const links = attempt.children.map(({ run, trace }) =>
    linkTo({ traceId: traceIdOf(trace), spanId: runSpan(run) }, 'child'),
  );
  if (attempt.retry_of !== null) links.unshift(linkTo({ traceId, spanId: attemptSpan(attempt.retry_of) }, 'retry'));
  const span: Span = {
    traceId,
    spanId: attemptSpan(attempt.attempt),
    parentSpanId: stage.spanId,
    name: `${stage.name} attempt`,
    kind: CONSUMER,
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(endOf(attempt)),
    attributes: attributesOf({
      'millrace.stage': attempt.stage,
      'millrace.attempt': attempt.attempt,
      'millrace.number': attempt.number,
      'millrace.state': attempt.state,
      'millrace.superseded': attempt.superseded || null,
      'millrace.isolated': attempt.isolated || null,
      'millrace.queued_ms': Math.round((start - attempt.created) / 1000),
      'error.type': attempt.code,
      ...usageAttributes(attempt.usage ?? {}),
    }),
    ...(links.length > 0 && { links }),
    status: statusOf(attempt),
  };
  const isJob = attempt.job !== null && !ownServices.includes(attempt.service ?? '');
  return isJob ? [span, spanOfJob(attempt, span)] : [span];
}

function spanOfJob(attempt: TracedAttempt, parent: Span): Span {
  return {
    traceId: parent.traceId,
    spanId: spanId(`job ${attempt.attempt}`),
    parentSpanId: parent.spanId,
    name: `${attempt.service} job`,
    kind: CLIENT,
    startTimeUnixNano: nanos(attempt.job_started ?? attempt.started ?? attempt.created),
    endTimeUnixNano: parent.endTimeUnixNano,
    attributes: attributesOf({ 'millrace.service': attempt.service, 'millrace.job': attempt.job }),
    status: parent.status,
  };
}

/** Returns when an attempt's span ends. An attempt without an end, whose stage was started over, ends when it began. */
const endOf = ({ finished, started, created }: TracedAttempt) => finished ?? started ?? created;

function statusOf({ state, code, message }: TracedAttempt): Span['status'] {
  return state === 'failed' ? { code: ERROR, message: message ?? code ?? 'failed' } : {};
}

/** Returns the model and its tokens by the conventions for generative AI; the cost under a name of our own. */
function usageAttributes(usage: Record<string, unknown>): Attributes {
  const number = (name: string) => (typeof usage[name] === 'number' ? usage[name] : null);
  const text = (name: string) => (typeof usage[name] === 'string' ? usage[name] : null);
  const { operation, provider } = calledOf(usage);
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': text('model'),
    'gen_ai.usage.input_tokens': number('input_tokens'),
    'gen_ai.usage.output_tokens': number('output_tokens'),
    'gen_ai.usage.cache_read.input_tokens': number('cached_input_tokens'),
    'gen_ai.usage.cache_creation.input_tokens': number('cache_write_tokens'),
    'millrace.prompt': text('prompt'),
    'millrace.cost_usd': number('cost_usd'),
  };
}

/** Returns the operation and the provider of the calls that a usage names; null where it names none, or several. */
function calledOf(usage: Record<string, unknown>): { operation: string | null; provider: string | null } {
  const calls = typeof usage.call === 'string' ? usage.call.split(', ').map((call) => call.split(' ')) : [];
  const only = (at: number) => {
    const [one, ...others] = new Set(calls.map((call) => call[at]));
    return others.length === 0 ? (one ?? null) : null;
  };
  return { operation: usage.turns === undefined ? only(0) : 'invoke_agent', provider: only(1) };
}

function attributesOf(values: Attributes): KeyValue[] {
  return Object.entries(values).flatMap(([key, value]) =>
    value === null || value === undefined ? [] : [{ key, value: typedValue(key, value) }],
  );
}

function typedValue(key: string, value: string | number | boolean): KeyValue['value'] {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  // Of one type for each key, whatever the value: collectors refuse or split a key of two types.
  return key === 'millrace.cost_usd' || !Number.isInteger(value) ? { doubleValue: value } : { intValue: String(value) };
}
