// The end of a campaign: the faults are over, time goes on, and all comes to its end. Then what was recorded is looked at.
import { setTimeout as pause } from 'node:timers/promises';
import { unlike } from '../support/random-ending.ts';
import { type Campaign, rootNames, roots } from './campaign.ts';
import type { ChaosStack } from './chaos-stack.ts';
import { unpauseAll } from './operations.ts';

const patienceMs = 240_000;
const lookMs = 60;
/**
 * So long nothing may change before the clock is moved on, since a function or a service may be at work: at first, and at
 * the most. It doubles each time, so that a slow machine gets its work done before a lease expires or a deadline passes.
 */
const stillMs = { first: 1_000, mostOfFunctions: 16_000, mostOfServices: 4_000 };

/** Runs and what hangs on them that are not over. */
const open = `(select count(*) from millrace.runs where status = 'running')
  + (select count(*) from millrace.fan_outs where state in ('open', 'abandoned')) + (select count(*) from millrace.child_tallies)`;

/** Where all stands, as one text: while it changes, somebody is at work. */
const state = `select md5(coalesce(string_agg(a.id || a.state::text || a.poll_at::text || coalesce(a.job_id, ''), ' ' order by a.id), '')
  || (select count(*) from millrace.turns)::text || (select count(*) from millrace.child_tallies)::text || (select count(*) from millrace.fan_outs where state in ('open', 'abandoned'))::text)
  from millrace.attempts a where a.state in ('queued', 'started', 'waiting')`;

/** Moves the clock on to the next retry, where that is all that anybody waits for. Answers whether it did. */
const skipBackoff = `
  with live as (select a.state, a.queue_at from millrace.attempts a where a.state in ('queued', 'started', 'waiting') and coalesce(a.service, '') <> 'children')
  update millrace.test_clock set ahead = ahead + (select min(l.queue_at) - millrace.now() from live l)
  where exists (select from live l) and not exists (select from live l where l.state <> 'queued' or l.queue_at <= millrace.now())
  returning ahead`;

/** Brings every run to its end, moving the clock on where nothing else would happen. Throws when some never end. */
async function finishAll({ chaos }: Campaign): Promise<void> {
  const deadline = Date.now() + patienceMs;
  let [last, since, jumps, patience] = ['', Date.now(), 0, stillMs.first];
  for (;;) {
    if ((await chaos.value(`select (${open})::int`)) === 0) return;
    if (Date.now() > deadline) throw new Error(`some runs never end\n${await whatIsOpen(chaos)}`);
    await decideAll(chaos);
    if ((await chaos.rows(skipBackoff)).length > 0) await look(chaos);
    const now = await chaos.value<string>(state);
    if (now !== last) [last, since] = [now, Date.now()];
    const isWorking = await chaos.value<boolean>(
      `select exists (select from millrace.attempts where state = 'started')`,
    );
    if (Date.now() - since > Math.min(patience, isWorking ? stillMs.mostOfFunctions : stillMs.mostOfServices)) {
      // Past a lease first, or a poll; then, where nobody holds anything, past the deadline of a job that is lost for good.
      await chaos.advance(!isWorking && jumps % 2 === 1 ? '61 minutes' : '65 seconds');
      await look(chaos);
      patience *= 2;
      jumps += 1;
      since = Date.now();
    }
    await pause(lookMs);
  }
}

async function look(chaos: ChaosStack): Promise<void> {
  await chaos.sweep();
  await chaos.rows('select millrace.wake_job_poll()');
}

async function decideAll(chaos: ChaosStack): Promise<void> {
  await chaos.rows(
    `select public.millrace_decide(d.attempt_id, '{"keep": "all"}') from public.millrace_decisions d
     join millrace.attempts a on a.id = d.attempt_id and a.state = 'waiting' where d.closed_at is null`,
  );
}

async function whatIsOpen(chaos: ChaosStack): Promise<string> {
  const lines = [
    ...(await chaos.rows(
      `select p.name, r.entity_id, s.name as stage, a.id, a.state, a.number, a.queue_at - millrace.now() as due_in, a.deadline_at - millrace.now() as deadline_in, a.service, a.job_id, a.token
       from millrace.attempts a join millrace.runs r on r.id = a.run_id join millrace.pipelines p on p.id = r.pipeline_id
       join millrace.stages s on s.id = a.stage_id where a.state in ('queued', 'started', 'waiting') order by a.id limit 30`,
    )),
    ...(await chaos.rows(
      `select 'fan-out' as what, f.* from millrace.fan_outs f where state in ('open', 'abandoned')`,
    )),
    ...(await chaos.rows('select * from millrace.check_invariants()')),
    ...(await chaos.rows('select at, level, code, message from millrace.log order by id desc limit 15')),
  ];
  return lines.map((line) => JSON.stringify(line)).join('\n');
}

/** The newest runs of rows that users start, which ended neither well nor by somebody's word. */
const unfinished = (pipelines: readonly string[]) => `
  select distinct on (r.entity_id) r.id, r.status::text as status, p.name as pipeline, r.entity_id as entity,
    (select min(s.name || ' ' || (a.error ->> 'code')) from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where a.run_id = r.id and a.state = 'failed' and not a.superseded and not exists (
       select from millrace.attempts n where n.run_id = a.run_id and n.stage_id = a.stage_id and n.number > a.number)) as cause,
    (select string_agg(s.name || ' ' || (a.error ->> 'code') || ': ' || left(a.error ->> 'message', 200), '; ') from millrace.attempts a join millrace.stages s on s.id = a.stage_id
     where a.run_id = r.id and a.state = 'failed' and not a.superseded) as why
  from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
  where p.name in (${pipelines.map((name) => `'${name}'`).join(', ')})
  order by r.entity_id, r.id desc`;

/**
 * Rows may have used up all attempts while the faults went on. So an operator does what the README says: retries what
 * failed, and where that does not help, since its input is gone, starts the row anew. Then every row must be through.
 */
async function completeAll(campaign: Campaign): Promise<void> {
  const { chaos, cancelled } = campaign;
  const failed = async () => {
    const rows = [];
    for (const pipelines of [['leads'], ['documents', 'document_monolith'], ['books']]) {
      rows.push(...(await chaos.rows<Record<string, string>>(unfinished(pipelines))));
    }
    return rows.filter(
      ({ status, entity }) => status !== 'completed' && !(status === 'cancelled' && cancelled.has(entity as string)),
    );
  };
  const replayed = await failed();
  for (const { id, cause } of replayed) {
    campaign.count(`retried at the end (${cause})`);
    await chaos.rows('select millrace.retry($1)', [id]);
  }
  if (replayed.length > 0) await finishAll(campaign);
  const again = await failed();
  for (const { pipeline, entity, cause } of again) {
    campaign.count(`started anew at the end (${cause})`);
    const name = pipeline === 'document_monolith' ? 'documents' : pipeline;
    await chaos.rows('select millrace.start($1, $2, p_restart => true)', [name, entity]);
  }
  if (again.length > 0) await finishAll(campaign);
  campaign.troubles.push(
    ...(await failed()).map(
      (row) =>
        `not completed: ${JSON.stringify(row)}; before: ${replayed.find(({ entity }) => entity === row.entity)?.why}`,
    ),
  );
}

/** Statements that find nothing where all is well, by what they would have found. */
const wrongs: Record<string, string> = {
  'a broken invariant': 'select * from millrace.check_invariants()',
  'a result recorded twice': `select a.run_id, a.stage_id, count(*) from millrace.attempts a
    where a.state = 'completed' and not a.superseded group by 1, 2 having count(*) > 1`,
  'a stage of a completed run without its result': `select r.id, s.name from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id join millrace.stages s on s.id = vs.stage_id
    where r.status = 'completed' and (select count(*) from millrace.attempts a where a.run_id = r.id and a.stage_id = vs.stage_id and a.state in ('completed', 'skipped') and not a.superseded) <> 1`,
  'a live attempt': `select id, state from millrace.attempts where state in ('queued', 'started', 'waiting')`,
  'an open question': 'select * from public.millrace_decisions where closed_at is null',
  'an open alert': 'select message from millrace.alerts where resolved_at is null',
  'a fan-out left over': `select * from millrace.fan_outs where state in ('open', 'abandoned')`,
  'a tally left over': 'select * from millrace.child_tallies',
  'something in flight': 'select * from millrace.in_flight',
  'a claim left over': 'select * from millrace.claims',
  'a worker left over': 'select * from millrace.workers where left_at is null',
  'a wake left over': 'select * from millrace.wake_ups',
  'a document without its chunks': `select d.id, d.chunking_result -> 'chunks' as said, count(c.id) from public.document d
    left join public.chunk c on c.document_id = d.id where d.chunking_status = 'completed' group by d.id having count(c.id) <> (d.chunking_result ->> 'chunks')::int`,
  'a completed document with a chunk that has no facts': `select d.id, c.id from public.document d join public.chunk c on c.document_id = d.id
    where d.kg_ingest_status = 'completed' and not exists (select from millrace.runs r where r.entity_id = c.id::text and r.status = 'completed')`,
  'a completed book without its document': `select b.id, b.assemble_result ->> 'path' from public.books b where b.assemble_status = 'completed'
    and not exists (select from storage.objects o where o.bucket_id = 'books' and o.name = b.assemble_result ->> 'path')`,
  'a page of a completed book whose run goes on': `select g.id from public.pages g join public.books b on b.id = g.book_id
    where b.assemble_status = 'completed' and 'started' in (g.ocr_status, g.blend_status, g.label_status)`,
};

/** What the columns of a pipeline's rows show that its newest runs did not come to. */
function unshown(): string[] {
  // The stage toc of books runs another pipeline, of no result of its own; it is shown like the others.
  const ofRoots = rootNames.map((name): [string, string, readonly string[]] => [
    name,
    roots[name].table,
    roots[name].stages,
  ]);
  const shown: [string, string, readonly string[]][] = [
    ...ofRoots,
    ['pages', 'pages', ['ocr', 'blend', 'label']],
    ['document_monolith', 'document', ['monolith']],
  ];
  const otherWay: Record<string, string> = { documents: 'document_monolith', document_monolith: 'documents' };
  return shown.flatMap(([pipeline, table, stages]) =>
    stages.map((stage) => unlike(pipeline, table, stage, otherWay[pipeline])),
  );
}

async function find(campaign: Campaign, what: string, statement: string): Promise<void> {
  const found = await campaign.chaos.asAdmin(statement);
  campaign.troubles.push(...found.slice(0, 5).map((row) => `${what}: ${JSON.stringify(row)}`));
}

/** Rows whose writer was told that they are queued, and that have no run: they are lost. */
async function findLost(campaign: Campaign): Promise<void> {
  for (const { table } of Object.values(roots)) {
    const ids = [...campaign.promised].filter((row) => row.startsWith(`${table} `)).map((row) => row.split(' ')[1]);
    const lost = await campaign.chaos.rows(
      `select e.id from public.${table} e where e.id = any ($1) and not exists (select from millrace.runs r where r.entity_id = e.id::text)`,
      [ids],
    );
    campaign.troubles.push(...lost.map((row) => `a lost row: ${table} ${row.id}`));
  }
}

function findBoughtTwice({ chaos, troubles }: Campaign): void {
  for (const [key, jobs] of chaos.services.jobs) {
    if (jobs.size > 1) troubles.push(`one idempotency key, ${jobs.size} jobs: ${key}`);
  }
  for (const [callback, times] of chaos.services.accepted) {
    if (times > 1) troubles.push(`a callback was accepted ${times} times: ${callback}`);
  }
}

async function countAll(campaign: Campaign): Promise<void> {
  const [counted] = await campaign.chaos.asAdmin<Record<string, number>>(
    `select (select count(*) from millrace.runs)::int as runs, (select count(*) from millrace.attempts)::int as attempts,
       (select count(*) from millrace.attempts where state = 'completed')::int as completed`,
  );
  for (const [what, number] of Object.entries(counted ?? {})) campaign.count(what, number);
  const failed = await campaign.chaos.asAdmin<{ code: string; number: number }>(
    `select error ->> 'code' as code, count(*)::int as number from millrace.attempts where state = 'failed' group by 1`,
  );
  for (const { code, number } of failed) campaign.count(`failed as ${code}`, number);
}

/** Ends a campaign and looks at what came of it; what is wrong stands in its troubles. */
export async function endCampaign(campaign: Campaign): Promise<void> {
  const { chaos } = campaign;
  await unpauseAll(chaos);
  await look(chaos);
  await finishAll(campaign);
  await completeAll(campaign);
  // So that no dead worker counts as live, and the sweep has no reason to keep anything.
  for (let n = 0; n < 2; n += 1) {
    await chaos.advance('61 minutes');
    await chaos.sweep();
  }
  await settleDown(chaos);
  await countAll(campaign);
  for (const [what, statement] of Object.entries(wrongs)) await find(campaign, what, statement);
  for (const statement of unshown()) await find(campaign, 'a column that shows something else', statement);
  await findLost(campaign);
  findBoughtTwice(campaign);
  await clear(campaign);
}

/** A function that was idle when the clock was moved on looks at its queue once more before it leaves. */
async function settleDown(chaos: ChaosStack): Promise<void> {
  const patient = Date.now() + stillMs.mostOfFunctions;
  while (Date.now() < patient && (await chaos.rows('select from millrace.workers where left_at is null')).length > 0) {
    await pause(lookMs);
  }
}

/**
 * Deletes all rows, as users do; nothing of their runs may stay. An empty group may: claims alone write groups, so it goes
 * with the next claim of its stage.
 */
async function clear(campaign: Campaign): Promise<void> {
  const { chaos } = campaign;
  for (const { table } of Object.values(roots)) await chaos.rows(`delete from public.${table}`);
  await chaos.rows('update public.document_way set share = null');
  for (let n = 0; n < 2; n += 1) await chaos.sweep();
  const theirs = ['runs', 'attempts', 'fan_outs', 'fan_progress', 'child_tallies', 'turns', 'in_flight'];
  for (const table of [...theirs, 'run_metadata', 'dropped_metadata']) {
    await find(campaign, `left in ${table} when all rows were deleted`, `select * from millrace.${table} limit 2`);
  }
}
