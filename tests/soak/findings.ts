// The rules that must hold when a campaign is over: of the rows, of what was recorded, booked and paid for, and of the engine itself.
import { setTimeout as pause } from 'node:timers/promises';
import { allFaults } from '../support/bookkeeping.ts';
import { unlike } from '../support/engine/random-ending.ts';
import { batchWrongs, findBoughtTwice as findAnswersBoughtTwice } from './batch-findings.ts';
import { type Campaign, type ColumnRoot, columnRootNames, roots } from './campaign.ts';
import { bookedStages } from './functions/parcel-pipelines.ts';

/** Statements that find nothing where all is well, by what they would have found. */
const wrongs: Record<string, string> = {
  'a broken invariant': allFaults,
  'a result recorded twice': `select a.run_id, a.stage_id, count(*) from millrace.attempts a
    where a.state = 'completed' and not a.superseded group by 1, 2 having count(*) > 1`,
  'a stage of a completed run without its result': `select r.id, s.name from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id join millrace.stages s on s.id = vs.stage_id
    where r.status = 'completed' and r.ended_as is null and not vs.on_demand and (select count(*) from millrace.attempts a where a.run_id = r.id and a.stage_id = vs.stage_id and a.state in ('completed', 'skipped') and not a.superseded) <> 1`,
  'a link without its one page, job or end': `select l.id, l.status from public.linkedin_links l where l.status = 'extracted'
    and 1 <> (select count(*) from public.jobs j where j.link_id = l.id)`,
  'an article on the site that is not published, or the other way': `select q.id, q.status_code from public.ingestion_queue q
    where (q.status_code in (400, 410)) <> exists (select from public.publication p where p.queue_id = q.id)`,
  'a row left out and not taken up': 'select * from millrace.bypassed',
  'a bulk under way': `select id, state from millrace.bulks where state in ('previewed', 'running', 'stopped')`,
  'a live attempt': `select id, state from millrace.attempts where state in ('queued', 'started', 'waiting')`,
  'an open question': 'select * from public.millrace_decisions where closed_at is null',
  'a late run': 'select run_id, stage from millrace.late_runs',
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
    where b.assemble_status = 'completed' and 'started' in (g.text_layer_status, g.ocr_status, g.blend_status, g.label_status)`,
};

/** The values that the columns of a pipeline's rows show that its newest runs did not come to. */
function unshown(): string[] {
  const shown: [string, string, readonly string[]][] = [
    ...columnRootNames.map((name: ColumnRoot): [string, string, readonly string[]] => [
      name,
      roots[name].table,
      // The stage toc runs another pipeline, of no result of its own; it is shown like the others.
      roots[name].stages,
    ]),
    ['pages', 'pages', ['text_layer', 'ocr', 'blend', 'label']],
    ['document_monolith', 'document', ['monolith']],
  ];
  const otherWay: Record<string, string> = { documents: 'document_monolith', document_monolith: 'documents' };
  return shown.flatMap(([pipeline, table, stages]) =>
    stages.map((stage) => unlike(pipeline, table, stage, otherWay[pipeline])),
  );
}

export async function find(campaign: Campaign, what: string, statement: string): Promise<void> {
  const found = await campaign.chaos.asAdmin(statement);
  campaign.troubles.push(...found.slice(0, 5).map((row) => `${what}: ${JSON.stringify(row)}`));
}

/** Rows whose writer was told that they are queued, and that have no run: they are lost. */
async function findLost(campaign: Campaign): Promise<void> {
  for (const { table } of Object.values(roots)) {
    const ids = [...campaign.promised].filter((row) => row.startsWith(`${table} `)).map((row) => row.split(' ')[1]);
    const lost = await campaign.chaos.rows(
      `select e.id from public.${table} e where e.id = any ($1) and not exists (select from millrace.runs r where r.entity_id = e.id::text)
         and not exists (select from millrace.former_runs f where f.entity_id = e.id::text)`,
      [ids],
    );
    campaign.troubles.push(...lost.map((row) => `a lost row: ${table} ${row.id}`));
  }
}

function findBoughtTwice({ chaos, troubles }: Campaign): void {
  for (const [key, jobs] of chaos.parts.services.jobs) {
    if (jobs.size > 1) troubles.push(`one idempotency key, ${jobs.size} jobs: ${key}`);
  }
  for (const [callback, times] of chaos.parts.services.accepted) {
    if (times > 1) troubles.push(`a callback was accepted ${times} times: ${callback}`);
  }
}

async function countAll(campaign: Campaign): Promise<void> {
  const [counted] = await campaign.chaos.asAdmin<Record<string, number>>(
    `select (select count(*) from millrace.runs)::int as runs, (select count(*) from millrace.attempts)::int as attempts,
       (select count(*) from millrace.attempts where state = 'completed')::int as completed`,
  );
  for (const [what, number] of Object.entries(counted ?? {})) campaign.count(what, number);
  campaign.count('attempts', (await figuresOf(campaign)).removed - campaign.before.removed);
  const failed = await campaign.chaos.asAdmin<{ code: string; number: number }>(
    `select error ->> 'code' as code, count(*)::int as number from millrace.attempts where state = 'failed' group by 1`,
  );
  for (const [what, number] of campaign.chaos.parts.provider.counts) campaign.count(what, number);
  for (const { code, number } of failed) campaign.count(`failed as ${code}`, number);
}

/** All that the booked stages have completed since the stack was started; what is copied was completed by another run. */
const completed = `select coalesce(sum(t.n), 0)::int from millrace.sums t join millrace.stages s on s.id = t.stage_id
  join millrace.pipelines p on p.id = s.pipeline_id where t.unit = 'total' and t.outcome = 'completed'
  and p.name in ('parcels', 'labels', 'remarks') and s.name = any ($1)`;

/** The counts of the figures so far, pulses and what is pruned included. */
export async function figuresOf({ chaos }: Campaign): Promise<Campaign['before']> {
  while ((await chaos.value<number>('select millrace.add_pulses()')) > 0);
  const removed = `select coalesce(sum(n), 0)::int from millrace.sums where unit = 'total' and outcome = 'removed' and stage_id <> 0`;
  return { completed: await chaos.value(completed, [bookedStages]), removed: await chaos.value(removed) };
}

/** The booked work is the completed work, each stage run once, and with a receipt of its own that was paid for. */
async function compareBooks(campaign: Campaign): Promise<void> {
  const { chaos, troubles } = campaign;
  const done = (await figuresOf(campaign)).completed - campaign.before.completed;
  const booked = await chaos.asAdmin<{ stage: string; row_id: string; key: string; receipt: string }>(
    'select * from public.booked',
  );
  const { toll, provider } = chaos.parts;
  const paid = new Map([...toll.paid, ...provider.paid]);
  campaign.count('work booked', booked.length);
  campaign.count('receipts paid for', paid.size);
  if (booked.length !== done) troubles.push(`${done} results were completed, but ${booked.length} booked`);
  const keys = new Set<string>();
  for (const { stage, row_id, key, receipt } of booked) {
    const bought = paid.get(key);
    if (keys.has(key)) troubles.push(`booked twice: ${stage} of ${row_id}, ${key}`);
    keys.add(key);
    if (bought?.receipt !== receipt || !bought.what.has(`/${stage}/${row_id}`)) {
      troubles.push(`booked with a receipt that nobody paid for: ${stage} of ${row_id}, ${key}`);
    }
  }
  for (const [key, { what }] of paid) {
    if (what.size > 1) troubles.push(`one key paid for ${[...what].join(' and ')}: ${key}`);
  }
}

/** No stage of a run was paid for more often than it was executed; a key names the attempt that began the execution. */
async function findPaidTwice(campaign: Campaign): Promise<void> {
  const { toll, provider } = campaign.chaos.parts;
  const keys = [...toll.paid.keys(), ...provider.paid.keys()].map((key) => key.slice(37));
  await find(
    campaign,
    'paid for more often than it was executed',
    `select a.run_id, s.name, count(*) filter (where a.id = any ('{${keys}}')) as paid, count(distinct a.number - a.retry_count) as executed
     from millrace.attempts a join millrace.stages s on s.id = a.stage_id group by 1, 2
     having count(*) filter (where a.id = any ('{${keys}}')) > count(distinct a.number - a.retry_count)`,
  );
}

/** The last run of a schedule may have met a fault, and the next one comes within seconds. */
const patienceOfDoctor = 30_000;

async function askDoctor(campaign: Campaign): Promise<void> {
  const unwell = 'select what, detail from millrace.doctor() where not ok';
  const patient = Date.now() + patienceOfDoctor;
  while (Date.now() < patient && (await campaign.chaos.asAdmin(unwell)).length > 0) await pause(500);
  await find(campaign, 'a finding of the doctor', unwell);
}

/** Looks at everything; what is wrong stands in the campaign's troubles. */
export async function lookAtAll(campaign: Campaign): Promise<void> {
  await countAll(campaign);
  for (const [what, statement] of Object.entries({ ...wrongs, ...batchWrongs })) await find(campaign, what, statement);
  for (const statement of unshown()) await find(campaign, 'a column that shows something else', statement);
  await findLost(campaign);
  findBoughtTwice(campaign);
  await compareBooks(campaign);
  await findPaidTwice(campaign);
  await findAnswersBoughtTwice(campaign);
  await askDoctor(campaign);
}
