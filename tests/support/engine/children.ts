// The helpers that tests of parents and children share: folders whose stage `split` spawns a run of `files` for each file, the calls
// of a worker that spawns, and collects.
import type pg from 'pg';
import { chain, type Engine, type Row, type StageDefinition } from '../engine.ts';
import { completed, failed, type WakeTarget, Worker, waiting } from '../worker.ts';

export interface SpawnAnswer {
  status: 'spawned' | 'busy' | 'stale';
  reason?: string;
  fan_out: number;
  spawned: number;
  total: number | null;
  busy: string[];
  wake: WakeTarget[];
}

export interface CollectAnswer {
  wake: WakeTarget[];
  busy: number[];
  collect: number[];
}

/** The numbers from `from` to `to`, as items of a map stage. */
export const numbers = (from: number, to: number): Row[] =>
  Array.from({ length: Math.max(to - from + 1, 0) }, (_, place) => ({ key: from + place }));

interface Family {
  /** Options of the map stage `split`. */
  split?: Row;
  /** Stages of `folder` beside `split`. */
  beside?: StageDefinition[];
  /** Stages of `files`. */
  files?: StageDefinition[];
  /** The projection of `folder`. */
  projection?: string;
  /** The projection of `files`. */
  filesProjection?: string;
}

/**
 * Defines `files` over public.items (scan → blend unless given otherwise) and `folder` over public.folders (split → publish,
 * where split is a map over files whose insert function keeps one item a folder and number). Calls may be repeated.
 */
export async function defineFamily(engine: Engine, family: Family = {}): Promise<void> {
  const files = family.files ?? chain(['scan', 'blend']);
  await engine.pipeline(files, { projection: family.filesProjection ?? 'columns' }, 'files');
  await engine.sql.query(`
    alter table public.items add column if not exists folder text, add column if not exists number text;
    create unique index if not exists items_of_folders on public.items (folder, number);
    create or replace function public.insert_files(p_parent text, p_items jsonb) returns table (item_key text, entity_id text)
    language sql as $$
      insert into public.items as i (folder, number, label) select p_parent, n ->> 'key', n ->> 'label' from jsonb_array_elements(p_items) n
      where not exists (select from public.items o where o.folder = p_parent and o.number = n ->> 'key')
      on conflict (folder, number) do nothing;
      select i.number, i.id::text from public.items i where i.folder = p_parent and i.number in (select n ->> 'key' from jsonb_array_elements(p_items) n)
    $$`);
  const split = { name: 'split', kind: 'map', child: { pipeline: 'files', insert: 'public.insert_files' } };
  await engine.pipeline(
    [{ ...split, ...family.split }, ...(family.beside ?? [{ name: 'publish', needs: ['split'] }])],
    { table: 'public.folders', projection: family.projection ?? 'columns' },
    'folder',
  );
}

/** Inserts folders and starts their runs; resolves to their ids. */
export async function startFolders(engine: Engine, count = 1): Promise<string[]> {
  const statement = `insert into public.folders (label) select 'folder ' || n from generate_series(1, $1) n returning id`;
  const ids = (await engine.rows<{ id: string }>(statement, [count])).map((row) => row.id);
  for (const id of ids) await engine.sql.query(`select millrace.start('folder', $1)`, [id]);
  return ids;
}

/** A worker of the map stage that holds one attempt and spawns for it. */
export class Spawner {
  readonly worker: Worker;
  readonly item: { attempt: number; token: string; run: number; entity_id: string };
  fanOut = 0;

  constructor(worker: Worker, item: Spawner['item']) {
    this.worker = worker;
    this.item = item;
  }

  /** A new worker that claims one attempt of a map stage (of folder.split unless named otherwise). */
  static async of(engine: Engine, stage = 'split', pipeline = 'folder'): Promise<Spawner> {
    const worker = await Worker.of(engine, stage, pipeline);
    return new Spawner(worker, await worker.takeOne());
  }

  /** The statement of one chunk, and its values. */
  chunk(items: unknown, last: boolean | null = false, token = this.item.token): [string, unknown[]] {
    const values = [this.worker.id, this.item.attempt, token, JSON.stringify(items), last];
    return ['select public.millrace_spawn($1, $2, $3, $4, $5) as answer', values];
  }

  /** One chunk. */
  async spawn(items: unknown, last = false, token?: string): Promise<SpawnAnswer> {
    const { rows } = await this.worker.client.query(...this.chunk(items, last, token));
    this.fanOut = rows[0].answer.fan_out ?? this.fanOut;
    return rows[0].answer;
  }

  /** Says that the attempt waits for its children, and ends; resolves to the verdict and the fan-outs to collect. */
  async wait(): Promise<{ verdict: string | undefined; collectChildren: number[] }> {
    const answer = await this.worker.complete([waiting(this.item, String(this.fanOut), 'children')]);
    await this.worker.leave();
    return {
      verdict: answer.items[0]?.verdict,
      collectChildren: (answer as unknown as { collect: number[] }).collect,
    };
  }
}

/**
 * Claims the next attempt of a map stage (of folder.split unless named otherwise), spawns these items in one last chunk and
 * waits for them; resolves to the fan-out. Throws when they cannot be spawned at once.
 */
export async function spawnAll(engine: Engine, items: Row[], stage = 'split', pipeline = 'folder'): Promise<number> {
  const spawner = await Spawner.of(engine, stage, pipeline);
  const answer = await spawner.spawn(items, true);
  if (answer.status !== 'spawned') throw new Error(`not spawned: ${JSON.stringify(answer)}`);
  await spawner.wait();
  engine.database.giveBack(spawner.worker.client);
  return spawner.fanOut;
}

/** A folder whose split is claimed by a worker that is about to spawn. */
export async function spawningFolder(
  engine: Engine,
  family: Family = {},
): Promise<{ folder: string; spawner: Spawner }> {
  await defineFamily(engine, family);
  const [folder] = await startFolders(engine);
  return { folder: folder as string, spawner: await Spawner.of(engine) };
}

/** A folder whose files 1 to `count` run and whose split waits for them. */
export async function waitingFolder(
  engine: Engine,
  count: number,
  family: Family = {},
): Promise<{ folder: string; fanOut: number }> {
  await defineFamily(engine, family);
  const [folder] = await startFolders(engine);
  return { folder: folder as string, fanOut: await spawnAll(engine, numbers(1, count)) };
}

/** A folder whose files 1 to `count` run, and whose split is done all the same: its worker said so. */
export async function leftFolder(
  engine: Engine,
  count: number,
  family: Family = {},
): Promise<{ folder: string; fanOut: number }> {
  const { folder, spawner } = await spawningFolder(engine, family);
  await spawner.spawn(numbers(1, count), true);
  await spawner.worker.report(completed(spawner.item));
  return { folder, fanOut: spawner.fanOut };
}

/** Collects children as a worker does, until nothing is left but what is busy. */
export async function collectChildren(engine: Engine, fanOuts?: number[], client?: pg.Client): Promise<CollectAnswer> {
  const session = client ?? (await engine.database.connect('service_role'));
  const ids =
    fanOuts ??
    (await engine.rows<{ id: string }>('select distinct fan_out_id as id from millrace.child_tallies')).map((row) =>
      Number(row.id),
    );
  const { rows } = await session.query('select public.millrace_collect_children($1) as answer', [ids]);
  if (!client) engine.database.giveBack(session);
  return rows[0].answer;
}

/** The status of a stage of a folder once the children that have reported are collected. */
export async function collected(engine: Engine, folder: string, stage = 'split'): Promise<string | undefined> {
  await collectChildren(engine);
  return (await folderStatuses(engine, folder))[stage];
}

/** Runs a stage of files for the files with these numbers (all that are due when none is given); the others are handed back. */
export async function runFiles(engine: Engine, stage: string, keys?: (number | string)[], error?: Row): Promise<void> {
  const worker = await Worker.of(engine, stage, 'files');
  const wanted = keys?.map(String);
  const batch = await worker.take(1000);
  const numberOf = await fileNumbers(
    engine,
    batch.map((item) => item.run),
  );
  const mine = batch.filter((item) => !wanted || wanted.includes(numberOf.get(item.run) ?? ''));
  if (wanted && mine.length < wanted.length) throw new Error(`only ${mine.length} of ${wanted} were due at ${stage}`);
  const rest = batch.filter((item) => !mine.includes(item));
  await worker.complete(
    mine.map((item) => (error ? failed(item, error) : completed(item, { file: numberOf.get(item.run) }))),
  );
  // Handing back costs an attempt the third time, which these tests do not mean.
  await worker.complete(rest.map((item) => ({ attempt: item.attempt, token: item.token, outcome: 'released' })));
  await engine.sql.query('update millrace.attempts set releases = 0 where releases > 0');
  await worker.leave(true);
  engine.database.giveBack(worker.client);
}

async function fileNumbers(engine: Engine, runs: number[]): Promise<Map<number, string>> {
  const rows = await engine.rows<{ id: string; item_key: string }>(
    'select id, item_key from millrace.runs where id = any ($1)',
    [runs],
  );
  return new Map(rows.map((row) => [Number(row.id), row.item_key]));
}

/** Runs both stages of the default files for these numbers, to their ends. */
export async function endFiles(engine: Engine, keys?: (number | string)[]): Promise<void> {
  await runFiles(engine, 'scan', keys);
  await runFiles(engine, 'blend', keys);
}

/** Fails these files for good at a stage. */
export async function failFiles(engine: Engine, keys?: (number | string)[], stage = 'scan'): Promise<void> {
  await runFiles(engine, stage, keys, { permanent: true });
}

/** Statuses of a folder's stages. */
export async function folderStatuses(engine: Engine, folder: string): Promise<Record<string, string>> {
  const [row] = await engine.rows('select * from public.folders where id = $1', [folder]);
  const entries = Object.entries(row ?? {}).filter(([column]) => column.endsWith('_status'));
  return Object.fromEntries(entries.map(([column, status]) => [column.slice(0, -'_status'.length), status as string]));
}

/** The newest run of a folder. */
export async function folderRun(engine: Engine, folder: string): Promise<{ id: string; status: string }> {
  const [run] = await engine.rows<{ id: string; status: string }>(
    `select r.id, r.status from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = 'folder' and r.entity_id = $1 order by r.id desc limit 1`,
    [folder],
  );
  if (!run) throw new Error(`folder ${folder} has no run`);
  return run;
}

/** The run of a fan-out's child with this key. */
export async function fileRun(
  engine: Engine,
  fanOut: number,
  key: number | string,
): Promise<{ id: string; status: string; entity_id: string }> {
  const [run] = await engine.rows<{ id: string; status: string; entity_id: string }>(
    'select id, status, entity_id from millrace.runs where fan_out_id = $1 and item_key = $2',
    [fanOut, String(key)],
  );
  if (!run) throw new Error(`fan-out ${fanOut} has no child ${key}`);
  return run;
}

/** How many children of a fan-out are in which status. */
export async function childStatuses(engine: Engine, fanOut: number): Promise<Record<string, number>> {
  const rows = await engine.rows<{ status: string; count: number }>(
    'select status, count(*)::int from millrace.runs where fan_out_id = $1 group by status order by status',
    [fanOut],
  );
  return Object.fromEntries(rows.map((row) => [row.status, row.count]));
}

/** The attempts of a stage in the newest run of an entity (of `folder` unless named otherwise), oldest first, as `number state`. */
export async function stageAttempts(
  engine: Engine,
  entity: string | undefined,
  stage: string,
  pipeline = 'folder',
): Promise<string[]> {
  const rows = await engine.rows<{ text: string }>(
    `select number || ' ' || state || case when superseded then ' superseded' else '' end as text
     from millrace.timeline((
       select max(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = $1 and r.entity_id = $2))
     where stage = $3`,
    [pipeline, entity, stage],
  );
  return rows.map((row) => row.text);
}

/** Sweeps; resolves to what the sweep reports. */
export async function sweep(engine: Engine): Promise<Row> {
  return engine.value('select millrace.sweep()');
}
