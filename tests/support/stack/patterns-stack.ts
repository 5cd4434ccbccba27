// A stack with small pipelines for the patterns (tests/faults/functions), whose functions a test kills at a chosen call.
// The sweep runs only when a test says so: it would hide what does not come about by itself.

import path from 'node:path';
import { expect } from 'vitest';
import { patternPipelines } from '../../faults/functions/pattern-pipelines.ts';
import { compiled, definitionOf } from '../definitions.ts';
import type { Row } from '../engine.ts';
import { describeAttempt } from '../examples/leads-report.ts';
import { type Call, type Fate, type FaultProxy, send, startFaultProxy } from '../faults/fault-proxy.ts';
import { type FunctionsFolder, functionsFolder } from './functions-folder.ts';
import { LeadsStack } from './stack.ts';

/** A call of an engine's function on its way through a proxy. */
export interface EngineCall {
  name: string;
  args: Row;
}

const ownFunctions = patternPipelines.flatMap(({ stages }) =>
  Object.values(stages).flatMap((stage) => ('function' in stage ? [stage.function] : [])),
);

/** Reads the call of an engine's function; null when it is another call. */
export function engineCall({ path: url, body }: Call): EngineCall | null {
  const name = /\/rpc\/(\w+)$/.exec(url)?.[1];
  return name === undefined ? null : { name, args: JSON.parse(body) };
}

/** The outcomes that a call of millrace_complete reports. */
export function outcomesOf({ args }: EngineCall): string[] {
  return (args.p_items as { outcome: string }[]).map(({ outcome }) => outcome);
}

export class PatternsStack {
  readonly leads: LeadsStack;
  /** The calls that tracks-left asks of the project; all other functions go through leads.proxies.toProject. */
  readonly toProjectFromLeft: FaultProxy;
  readonly #witness: FaultProxy;
  readonly #folder: FunctionsFolder;
  /** The lines that handlers and tools have reported since the test began: what they do, under which idempotency key. */
  told: { what: string; key: string }[] = [];
  /** Called with what a handler or tool tells; it goes on once this resolves. */
  hear: (what: string) => Promise<void> = async () => {};

  private constructor(leads: LeadsStack, left: FaultProxy, witness: FaultProxy, folder: FunctionsFolder) {
    this.leads = leads;
    this.toProjectFromLeft = left;
    this.#witness = witness;
    this.#folder = folder;
    witness.decide = async ({ path: url, headers }) => {
      const what = url.slice(1);
      this.told.push({ what, key: String(headers['idempotency-key']) });
      await this.hear(what);
      return { status: 200, json: {} };
    };
  }

  static async start(): Promise<PatternsStack> {
    const module = (name: string) => path.join(import.meta.dirname, '..', '..', 'faults', 'functions', `${name}.ts`);
    const add = Object.fromEntries(ownFunctions.map((name) => [name, module(name)]));
    const folder = functionsFolder({ add, projectUrlFrom: 'PROJECT_PROXY_URL' });
    const [left, witness] = await Promise.all([startFaultProxy(), startFaultProxy()]);
    const env = { LEFT_PROXY_URL: left.url, WITNESS_URL: witness.url };
    const leads = await LeadsStack.start({ proxies: true, functionsDir: folder.path, env });
    left.target = leads.stack.apiUrl;
    const stack = new PatternsStack(leads, left, witness, folder);
    await stack.#define();
    return stack;
  }

  async #define(): Promise<void> {
    const { leads } = this;
    await leads.rows(
      `select cron.unschedule(jobname) from cron.job where jobname in ('millrace-sweep', 'millrace-poll')`,
    );
    await leads.rows(`
      create table public.tracks (id bigint generated always as identity primary key, album text, number text, side text, unique (album, number));
      create table public.albums (id bigint generated always as identity primary key, size int);
      create table public.releases (id bigint generated always as identity primary key);
      create table public.reviews (id bigint generated always as identity primary key);
      create table public.campaigns (id bigint generated always as identity primary key, leads text[]);
      create function public.insert_tracks(p_parent text, p_items jsonb) returns table (item_key text, entity_id text) language sql as $$
        insert into public.tracks (album, number, side) select p_parent, i ->> 'key', i ->> 'side' from jsonb_array_elements(p_items) i
        where not exists (select from public.tracks t where t.album = p_parent and t.number = i ->> 'key') on conflict do nothing;
        select t.number, t.id::text from public.tracks t where t.album = p_parent and t.number in (select i ->> 'key' from jsonb_array_elements(p_items) i)
      $$`);
    for (const pipeline of patternPipelines) {
      const definition = definitionOf(pipeline) as { entity: { table: string } };
      const stages = Object.keys(pipeline.stages);
      await leads.rows('select millrace.add_columns($1, variadic $2)', [definition.entity.table, stages]);
      await leads.rows('select millrace.define($1)', [compiled(definition)]);
    }
  }

  async stop(): Promise<void> {
    await this.leads.stop();
    await Promise.all([this.toProjectFromLeft.stop(), this.#witness.stop()]);
    this.#folder.remove();
  }

  /** Inserts a row of these values and starts a run for it; resolves to the run's id. */
  async begin(pipeline: string, values: Row = {}): Promise<string> {
    const { leads } = this;
    const [columns, given] = [Object.keys(values), Object.values(values)];
    const into = columns.length > 0 ? `(${columns}) values (${columns.map((_, n) => `$${n + 1}`)})` : 'default values';
    const table = await leads.value('select entity_table from millrace.pipelines where name = $1', [pipeline]);
    const id = await leads.value(`insert into ${table} ${into} returning id::text`, given);
    return leads.value('select millrace.start($1, $2)', [pipeline, id]);
  }

  /** The attempts of a run, as `stage number state` with the code of a failure. */
  async attempts(run: string): Promise<string[]> {
    return (await this.leads.rows('select * from millrace.timeline($1)', [run])).map((row) =>
      describeAttempt(row as Parameters<typeof describeAttempt>[0]),
    );
  }

  /** The result of a stage of a run. */
  async result(run: string, stage: string): Promise<unknown> {
    return this.leads.value(
      `select a.output from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where a.run_id = $1 and s.name = $2 and a.state = 'completed' and not a.superseded`,
      [run, stage],
    );
  }

  /** How many children of these runs have this status. */
  async children(runs: string[], status: string): Promise<number> {
    return this.leads.value(
      `select count(*)::int from millrace.runs r join millrace.fan_outs f on f.id = r.fan_out_id
       where f.run_id = any ($1) and r.status = $2::millrace.run_status`,
      [runs, status],
    );
  }

  /** Lets each call of an engine's function pass, unless `decide` says otherwise of it. */
  intercept(decide: (call: EngineCall, from: FaultProxy, whole: Call) => Fate | Promise<Fate>): void {
    for (const proxy of [this.leads.proxies.toProject, this.toProjectFromLeft]) {
      proxy.decide = (whole) => {
        const call = engineCall(whole);
        return call ? decide(call, proxy, whole) : 'pass';
      };
    }
  }

  /**
   * Calls `begin` and kills a function with SIGKILL at the first call of the engine for which `at` holds: before it is carried
   * out, or after, so that its answer is lost. `meanwhile` is what must have come about before; until then no call of that
   * kind is carried out. Resolves to the run that was begun, when the function is dead.
   */
  async kill(
    name: string,
    when: 'before' | 'after',
    at: (call: EngineCall) => boolean,
    begin: () => Promise<string>,
    meanwhile: (run: string) => Promise<unknown> = async () => true,
  ): Promise<string> {
    let met = false;
    let dead = false;
    this.intercept(async (call, proxy, whole) => {
      if (dead || !at(call)) return 'pass';
      if (!met) {
        met = true;
        if (when === 'after') await send(proxy.target, whole);
        const run = await begun;
        await this.until('the function may be killed', () => meanwhile(run));
        await this.leads.stack.functions.kill(name);
        dead = true;
      }
      return { status: 503, json: {} };
    });
    const begun = begin();
    await this.until(`${name} is killed`, async () => dead);
    return begun;
  }

  /** Makes leases and heartbeats of the dead worthless, and sweeps until no run is under way. */
  async recover(): Promise<void> {
    await this.leads.advance('2 minutes');
    await this.settled(() => this.leads.sweep());
  }

  /** Waits until no run is under way; `meanwhile` is called at every look. */
  async settled(meanwhile: () => Promise<unknown> = async () => {}): Promise<void> {
    await this.until('no run is under way', async () => {
      await meanwhile();
      return this.leads.value(`select not exists (select from millrace.runs where status = 'running')`);
    });
  }

  async until(what: string, probe: () => Promise<unknown>): Promise<void> {
    try {
      await this.leads.until(what, probe);
    } catch (error) {
      const logs = ownFunctions.flatMap((name) => [
        `${name} wrote:`,
        ...this.leads.stack.functions.logs(name).slice(-10),
      ]);
      throw new Error([(error as Error).message, ...logs].join('\n'));
    }
  }

  /** Fails the test when anything is stuck, spawned twice or recorded twice; then forgets what was told. */
  async expectSound(): Promise<void> {
    const { leads } = this;
    for (const proxy of [leads.proxies.toProject, this.toProjectFromLeft]) proxy.decide = () => 'pass';
    this.hear = async () => {};
    this.told = [];
    await leads.expectSound();
    // A child that was cancelled last is counted by the next sweep.
    await leads.sweep();
    expect(await leads.rows(`select * from millrace.fan_outs where state in ('open', 'abandoned')`)).toEqual([]);
    expect(await leads.rows('select fan_out_id from millrace.child_tallies')).toEqual([]);
    expect(
      await leads.rows(
        `select a.run_id, s.name from millrace.attempts a join millrace.stages s on s.id = a.stage_id
         where a.state = 'completed' and not a.superseded group by a.run_id, s.id having count(*) > 1`,
      ),
    ).toEqual([]);
    expect(
      await leads.rows(
        'select fan_out_id, entity_id from millrace.runs where fan_out_id is not null group by 1, 2 having count(*) > 1',
      ),
    ).toEqual([]);
  }
}
