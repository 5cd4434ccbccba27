import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type {
  FunctionStageInput,
  PipelineInput,
  StageInput,
} from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { defineStage, waiting } from '../../supabase/functions/_millrace/stage/stage.ts';
import { leads } from '../../supabase/functions/_pipelines/leads.ts';
import { checked, definitionOf } from '../support/definitions.ts';

const stage: FunctionStageInput = {
  kind: 'function',
  function: 'p-a',
  batchSize: 5,
  maxWorkers: 1,
  leaseSeconds: 30,
  timeoutSeconds: 10,
  retry: { maxAttempts: 3, backoff: { kind: 'list', seconds: [1, 2] } },
};
const define = (stages: PipelineInput['stages'], changes: Partial<PipelineInput> = {}) =>
  checked({
    name: 'p',
    entity: { table: 'public.things', key: 'id', projection: 'columns' },
    stages,
    ...changes,
  });

describe('leads', () => {
  test('is a chain in which messaging reads strategy and subject', () => {
    const json = definitionOf<{ stages: { name: string; needs: string[] }[] }>(leads);
    // A stage that somebody has added since may stand beside these.
    expect(Object.fromEntries(json.stages.map(({ name, needs }) => [name, needs]))).toMatchObject({
      scrape: [],
      intel: ['scrape'],
      strategy: ['intel'],
      subject: ['strategy'],
      messaging: ['strategy', 'subject'],
    });
  });

  test('is written in the keys the database reads', () => {
    const [scrape] = definitionOf<{ stages: Record<string, unknown>[] }>(leads).stages;
    expect(scrape).toMatchObject({
      name: 'scrape',
      kind: 'external',
      function: 'leads-scrape',
      batch_size: 5,
      max_workers: 4,
      lease_seconds: 60,
      timeout_seconds: 30,
      completion: { callback: true, poll_seconds: 2, deadline_seconds: 600 },
      result_limit_bytes: 1_048_576,
      retry: { max_attempts: 4, backoff: { kind: 'exponential', base_seconds: 5, cap_seconds: 300 } },
    });
  });

  test('keeps error codes as written, since they name what handlers throw', () => {
    const policy = { maxAttempts: 9, backoff: { kind: 'list' as const, seconds: [1] } };
    const retry = { ...stage.retry, byCode: { HTTP_500: policy, quotaExceeded: policy } };
    const [a] = definitionOf<{ stages: { retry: { by_code: object } }[] }>(define({ a: { ...stage, retry } })).stages;
    const written = { max_attempts: 9, backoff: policy.backoff };
    expect(a?.retry.by_code).toEqual({ HTTP_500: written, quotaExceeded: written });
  });
});

describe('what a pipeline says of its rows', () => {
  const entity = { table: 'public.things', key: 'id', projection: 'columns', metadata: 'metadata' } as const;

  test('is written in the keys the database reads', () => {
    expect(definitionOf(define({ a: stage }, { entity }))).toMatchObject({ entity });
  });

  test('tells who starts stages', () => {
    const json = definitionOf(define({ a: stage }, { entity: { ...entity, startableBy: ['authenticated'] } }));
    expect(json.entity).toEqual({ ...entity, startable_by: ['authenticated'] });
  });

  test('is left out where nothing is said', () => {
    const json = definitionOf(define({ a: stage }));
    expect(Object.keys(json)).toEqual(['pipeline', 'entity', 'stages']);
    expect(JSON.stringify(json.entity)).not.toMatch(/metadata|startable/);
  });
});

describe('a bad definition is refused with the field named', () => {
  test.each<[string, () => unknown, RegExp]>([
    ['negative limit', () => define({ a: { ...stage, batchSize: -1 } }), /stages\.a\.batchSize/],
    ['no attempts', () => define({ a: { ...stage, retry: { ...stage.retry, maxAttempts: 0 } } }), /retry\.maxAttempts/],
    ['timeout no worker can meet', () => define({ a: { ...stage, timeoutSeconds: 3_600 } }), /timeoutSeconds/],
    [
      'misspelt option',
      () => define({ a: { ...stage, bathSize: 3 } as StageInput }),
      /stages\.a has the unknown option bathSize: 3\. Do you mean batchSize\?/,
    ],
    [
      'misspelt option of retry',
      () => define({ a: { ...stage, retry: { ...stage.retry, maxAttempt: 3 } } as StageInput }),
      /stages\.a\.retry has the unknown option maxAttempt: 3\. Do you mean maxAttempts\?/,
    ],
    [
      'misspelt kind',
      () => define({ a: { ...stage, kind: undefined, knd: 'function' } as never }),
      /stages\.a has the unknown option knd: "function"\. Do you mean kind\?/,
    ],
    [
      'option of nobody',
      () => define({ a: { ...stage, colour: 3 } as StageInput }),
      /unknown option colour: 3\. A stage of kind function takes kind, function, host, needs, /,
    ],
    [
      'unknown need',
      () => define({ a: stage, b: stage, c: { ...stage, needs: ['d'] } }),
      /stages\.c\.needs names d, .*: name one of a, b\./,
    ],
    ['need of no other', () => define({ a: { ...stage, needs: ['b'] } }), /needs names b, .*: there is no other stage/],
    ['bad table', () => define({ a: stage }, { entity: { table: 'things', key: 'id', projection: 'none' } }), /table/],
    ['no stages', () => define({}), /at least one stage/],
    [
      'statuses to be written where there are none',
      () =>
        define(
          { a: stage },
          { entity: { table: 'public.things', key: 'id', projection: 'none', startableBy: ['authenticated'] } },
        ),
      /entity\.startableBy: belongs to the projections columns and status.*leave it out/,
    ],
    [
      'a role that is none',
      () =>
        define(
          { a: stage },
          { entity: { table: 'public.things', key: 'id', projection: 'columns', startableBy: ['a; drop'] } },
        ),
      /entity\.startableBy\.0 is "a; drop", but must be the name of a database role/,
    ],
    [
      'cycle',
      () => define({ a: { ...stage, needs: ['c'] }, b: { ...stage, needs: ['a'] }, c: { ...stage, needs: ['b'] } }),
      /cycle: a → c → b → a/,
    ],
    ['need of itself', () => define({ a: { ...stage, needs: ['a'] } }), /cycle: a → a/],
  ])('%s', (_, act, expected) => {
    expect(act).toThrow(expected);
  });

  test('code for a stage that is not defined names those that are', () => {
    const pipeline = define({ a: stage, b: stage });
    expect(() =>
      defineStage({ pipeline, stage: 'z', input: z.unknown(), output: z.unknown(), handler: () => null }),
    ).toThrow(/no stage z: it has a, b/);
  });
});

describe('code that its definition leaves without an end or a need', () => {
  const services = [{ name: 'printer', readCallback: () => ({ jobId: '1' }) }] as const;
  const base = { stage: 'b' as const, output: z.object({ a: z.string() }) };
  const code = { ...base, input: z.object({}), handler: () => ({ a: 'x' }), services, finish: () => ({ a: 'x' }) };

  test('is refused where nobody would hear how a job ends, by the service', () => {
    const pipeline = define({ a: stage, b: { ...stage, completion: { deadlineSeconds: 60 } } });
    expect(() => defineStage({ ...code, pipeline })).toThrow(
      'Stage b of pipeline p may wait for printer, but nobody would hear how that ends: its completion has neither',
    );
  });

  test('hears of a job by callback and by polling unless it says otherwise', () => {
    const pipeline = define({ a: stage, b: stage });
    expect(defineStage({ ...code, pipeline }).name).toBe('b');
    const [a] = definitionOf<{ stages: object[] }>(pipeline).stages;
    expect(a).toMatchObject({ completion: { callback: true, poll_seconds: 10, deadline_seconds: 600 } });
  });

  test('is refused where its input wants the result of a stage that it does not need', () => {
    const pipeline = define({ a: stage, b: { ...stage, needs: ['a'] }, c: stage });
    const needs = (shape: object) => ({ ...code, pipeline, input: z.object({ needs: z.object(shape as never) }) });
    expect(() => defineStage(needs({ a: z.string(), c: z.string() }))).toThrow(
      'The input of stage b of pipeline p wants needs.c, which the stage never gets: its definition needs a. Add c to needs',
    );
    expect(defineStage(needs({ a: z.string(), c: z.string().optional() })).name).toBe('b');
    expect(defineStage({ ...code, pipeline, input: z.unknown() }).name).toBe('b');
  });
});

test('the type of a handler allows what its stage declares, and waiting only where somebody could finish it', () => {
  const pipeline = define({ a: stage });
  const base = { pipeline, stage: 'a' as const, input: z.object({}), output: z.object({ a: z.string() }) };
  const services = [{ name: 'printer', readCallback: () => ({ jobId: '1' }) }] as const;
  const wait = () => waiting(services[0], '1');
  defineStage({ ...base, handler: () => ({ a: 'x' }) });
  defineStage({ ...base, handler: wait, services, finish: () => ({ a: 'x' }) });
  // @ts-expect-error: another form than the output's
  defineStage({ ...base, handler: () => ({ wrong: 1 }) });
  // @ts-expect-error: nobody could finish the job
  defineStage({ ...base, handler: wait });
  // @ts-expect-error: nobody could finish the job
  defineStage({ ...base, handler: wait, services });
});
