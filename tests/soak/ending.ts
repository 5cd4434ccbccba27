// The end of a campaign: the faults are over, time goes on, and all comes to its end. Then what was recorded is looked at.
import { setTimeout as pause } from 'node:timers/promises';
import { allFaults } from '../support/bookkeeping.ts';
import { type Campaign, rootNames, roots } from './campaign.ts';
import type { ChaosStack } from './chaos-stack.ts';
import { find, lookAtAll } from './findings.ts';
import { endAllActions, takeAllUp } from './operator-operations.ts';

/** So long nothing at all may change, however often the clock is moved on. */
const patienceMs = 120_000;
/** So long the ending may take, though something changes. */
const endingMs = 600_000;
const lookMs = 60;
/**
 * So long nothing may change before the clock is moved on, since a function or a service may be at work: at first, and at
 * the most. It doubles each time, so that a slow machine gets its work done before a lease expires or a deadline passes.
 */
const stillMs = { first: 1_500, mostOfFunctions: 16_000, mostOfServices: 4_000 };

/** Runs and what hangs on them that are not over. */
const open = `(select count(*) from millrace.runs where status = 'running')
  + (select count(*) from millrace.fan_outs where state in ('open', 'abandoned')) + (select count(*) from millrace.child_tallies)
  + (select count(*) from public.model_batches where ended_at is null)`;

/** Where all stands, as one text: while it changes, somebody is at work. */
const state = `select md5(coalesce(string_agg(a.id || a.state::text || a.poll_at::text || coalesce(a.job_id, ''), ' ' order by a.id), '')
  || (select count(*) from millrace.turns)::text || (select count(*) from millrace.child_tallies)::text || (select count(*) from millrace.fan_outs where state in ('open', 'abandoned'))::text)
  from millrace.attempts a where a.state in ('queued', 'started', 'waiting')`;

/**
 * Moves the clock on to the next retry, closing of a batch or poll of one, where nobody is at work and no service of another kind is
 * awaited. Answers whether it did. Time goes on faster between polls: a batch without end is cancelled after hours, and one that may
 * be another's is ended by its provider after a day.
 */
const skipBackoff = `
  with live as (
    select case when a.state = 'queued' then a.queue_at when a.service = 'model-batches' and a.state = 'waiting' then a.poll_at else 'epoch' end as due,
      case when a.state <> 'waiting' then interval '0' when b.ends_at > millrace.now() then '10 minutes' else '5 hours' end as more
    from millrace.attempts a left join public.model_batches b on b.job_id = a.job_id
    where a.state in ('queued', 'started') or a.state = 'waiting' and coalesce(a.service, '') not in ('children', 'judge-batch', 'reply-batch')
    union all
    select b.closes_at, '0' from public.model_batches b where b.begun_at is null and b.ended_at is null and b.closes_at is not null)
  update millrace.test_clock set ahead = ahead + (select l.due + l.more - millrace.now() from live l order by l.due limit 1)
  where exists (select from live) and not exists (select from live l where l.due <= millrace.now())
  returning ahead`;

/** Brings every run to its end, moving the clock on where nothing else would happen. Throws when some never end. */
async function finishAll({ chaos }: Campaign): Promise<void> {
  const began = Date.now();
  let [last, since, changed, jumps, patience] = ['', began, began, 0, stillMs.first];
  for (;;) {
    if ((await chaos.value(`select (${open})::int`)) === 0) return;
    if (Date.now() > Math.min(changed + patienceMs, began + endingMs))
      throw new Error(`some runs never end\n${await whatIsOpen(chaos)}`);
    await decideAll(chaos);
    if ((await chaos.rows(skipBackoff)).length > 0) await look(chaos);
    const now = await chaos.value<string>(state);
    if (now !== last) [last, since, changed] = [now, Date.now(), Date.now()];
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

/** The answer to each question that is open at the end. */
const decisions = { books: '{"keep": "all"}', review: '{"verdict": "approve"}', revise: '{"verdict": "save"}' };

async function decideAll(chaos: ChaosStack): Promise<void> {
  await chaos.rows(
    `select public.millrace_decide(d.attempt_id, case when s.name = 'revise' then $1 when p.name = 'articles' then $2 else $3 end::jsonb)
     from public.millrace_decisions d join millrace.attempts a on a.id = d.attempt_id and a.state = 'waiting'
     join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id where d.closed_at is null`,
    [decisions.revise, decisions.review, decisions.books],
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
    ...(await chaos.rows('select * from public.model_batches where ended_at is null')),
    ...(await chaos.rows(allFaults)),
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
  where p.name in (${pipelines.map((name) => `'${name}'`).join(', ')}) and r.copy_key is null
  order by r.entity_id, r.id desc`;

const others = rootNames.filter((name) => name !== 'documents').map((name) => [name]);

/**
 * Rows may have used up all attempts while the faults went on. So an operator does what the README says: retries what
 * failed, and where that does not help, since its input is gone, starts the row anew. Then every row must be through.
 */
async function completeAll(campaign: Campaign): Promise<void> {
  const { chaos, cancelled } = campaign;
  const failed = async () => {
    const rows = [];
    for (const pipelines of [['documents', 'document_monolith'], ...others]) {
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

/** Ends a campaign and looks at what came of it; what is wrong stands in its troubles. */
export async function endCampaign(campaign: Campaign): Promise<void> {
  const { chaos } = campaign;
  await endAllActions(campaign);
  await look(chaos);
  await finishAll(campaign);
  const taken = await takeAllUp(campaign);
  campaign.count('taken up at the end', taken);
  if (taken > 0) await finishAll(campaign);
  // Rows may have met every fault of the provider; the last tries of all meet none.
  chaos.parts.provider.behave();
  await completeAll(campaign);
  // So that no dead worker counts as live, and the sweep has no reason to keep anything.
  for (let n = 0; n < 2; n += 1) {
    await chaos.advance('61 minutes');
    await chaos.sweep();
  }
  await settleDown(chaos);
  await lookAtAll(campaign);
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
  const tables = [
    ...Object.values(roots).map(({ table }) => table),
    'source',
    'site_notice',
    'labels',
    'model_batches',
  ];
  for (const table of tables) await chaos.rows(`delete from public.${table}`);
  await chaos.asAdmin('truncate public.booked');
  await chaos.rows('update public.document_way set share = null');
  for (let n = 0; n < 2; n += 1) await chaos.sweep();
  const theirs = ['runs', 'attempts', 'fan_outs', 'fan_progress', 'child_tallies', 'turns'];
  for (const table of [...theirs, 'run_metadata', 'dropped_metadata']) {
    await find(campaign, `left in ${table} when all rows were deleted`, `select * from millrace.${table} limit 2`);
  }
}
