// What users do through the Data API, and operators in SQL.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { sampleDocuments } from '../../local/demo/samples/documents/sample-documents.ts';
import { logbookOf } from '../support/documents-stack.ts';
import { smallBookPdf } from '../support/small-book.ts';
import { type Campaign, orThrow, type RootName, roots } from './campaign.ts';
import { Choices, type OperationKind, type Step } from './plan.ts';

interface File {
  name: string;
  bytes: Uint8Array | string;
  mediaType: string;
}

type Play = (campaign: Campaign, choices: Choices, step: Step) => Promise<void>;

const plays: Record<OperationKind, Play> = {
  'insert leads': insertLeads,
  'insert a document': insertDocument,
  'insert a book': insertBook,
  'queue many leads': queueLeads,
  'queue a document': (campaign, choices) => queueOne(campaign, choices, 'documents'),
  'queue a book': (campaign, choices) => queueOne(campaign, choices, 'books'),
  'start anew': startAnew,
  cancel: (campaign, _, step) =>
    verb(campaign, step, `r.status = 'running'`, 'select millrace.cancel($1)', 'cancelled'),
  delete: deleteRow,
  reset: (campaign, _, step) => verb(campaign, step, 'true', 'select millrace.reset($1)'),
  skip: skipStage,
  retry: (campaign, _, step) => verb(campaign, step, `r.status <> 'running'`, 'select millrace.retry($1)'),
  replay: async ({ chaos }, choices) => {
    const pipeline = choices.oneOf([...Object.keys(roots), 'document_monolith', 'chunks', 'pages', 'toc']);
    await chaos.rows(`select millrace.replay($1, '{}', false)`, [pipeline]);
  },
  decide,
  'turn the cut-over': async ({ chaos }, choices) => {
    const share = choices.oneOf([1, 0, 0.5, null]);
    await chaos.rows('update public.document_way set share = $1', [share]);
  },
  pause: async ({ chaos }, choices) => {
    const pipeline = choices.oneOf(Object.keys(roots) as RootName[]) as RootName;
    const stage = choices.oneOf([null, ...roots[pipeline].stages]);
    await chaos.rows('select millrace.pause($1, $2)', [pipeline, stage]);
  },
  'go on': ({ chaos }) => unpauseAll(chaos),
  'hold a row': holdRow,
  'time passes': async ({ chaos }, choices) => chaos.advance(`${choices.oneOf([2, 5, 15, 40, 90, 200])} seconds`),
  sweep: async ({ chaos }) => {
    await chaos.rows(`select millrace.sweep()`);
    await chaos.rows('select millrace.wake_job_poll()');
  },
};

/** Plays an operation and counts it. */
export async function playOperation(campaign: Campaign, step: Step<OperationKind>): Promise<void> {
  campaign.count(step.kind);
  await campaign.attempt(step.kind, () => plays[step.kind](campaign, new Choices(step), step));
}

/** Lets everything go on that was paused. */
export async function unpauseAll(chaos: Campaign['chaos']): Promise<void> {
  const paused = await chaos.rows<{ pipeline: string; stage: string | null }>(
    'select pipeline, stage from millrace.paused',
  );
  for (const { pipeline, stage } of paused) await chaos.rows('select millrace.unpause($1, $2)', [pipeline, stage]);
}

async function insertLeads(campaign: Campaign, choices: Choices): Promise<void> {
  const { chaos, tenant } = campaign;
  const urls = Array.from({ length: 2 + choices.below(3) }, (_, n) =>
    chaos.site.add([`Harbour office ${n}`, `We mend sails for ${choices.below(90) + 10} boats a year.`]),
  );
  const leads = urls.map((url) => ({ email: 'harbour@example.com', company_url: url, account_id: tenant.account }));
  const inserted = orThrow(await tenant.rows.from('leads').insert(leads).select('id')) ?? [];
  const ids = inserted.map((row) => row.id as string);
  await queue(campaign, 'leads', 'scrape', ids);
}

/** Writes `queued`, as users do; whoever is told that it is done can rely on it. */
async function queue({ tenant, promised }: Campaign, pipeline: RootName, stage: string, ids: string[]) {
  const { table } = roots[pipeline];
  const asked = tenant.rows.from(table).update({ [`${stage}_status`]: 'queued' });
  const written = orThrow(await asked.in('id', ids).select('id')) ?? [];
  for (const row of written) promised.add(`${table} ${row.id}`);
}

let samples: Promise<File[]> | undefined;
const markdown = (place: string): File => ({
  name: 'lights.md',
  bytes: [
    '# Northern Light',
    `The Lamp Office keeps the Northern Light on ${place}. The Pilot Board built the Northern Light.`,
    logbookOf('northern light'),
    '# Southern Light',
    `The Harbour Watch keeps the Southern Light. The Pilot Board pays the Harbour Watch in ${place}.`,
    logbookOf('southern light'),
  ].join('\n\n'),
  mediaType: 'text/markdown',
});

async function insertDocument(campaign: Campaign, choices: Choices): Promise<void> {
  const { tenant } = campaign;
  samples ??= sampleDocuments();
  // One is a picture and one a recording, which are jobs elsewhere; texts are cheap.
  const paid = (await samples).filter(({ name }) => /\.(wav|jpg)$/.test(name));
  const file = choices.below(5) < 2 ? (choices.oneOf(paid) as File) : markdown(`Skerry ${choices.below(1000)}`);
  const id = randomUUID();
  const path = `${tenant.org}/${id}/${file.name}`;
  await upload(campaign, 'documents', path, file);
  const metadata = { source_name: file.name, source_platform: 'upload', clerk_org_id: tenant.org };
  orThrow(await tenant.rows.from('document').insert({ id, source_path: path, metadata }));
  await queue(campaign, 'documents', 'extraction', [id]);
}

async function upload({ tenant }: Campaign, bucket: string, path: string, { bytes, mediaType }: File): Promise<void> {
  const file = new Blob([typeof bytes === 'string' ? bytes : new Uint8Array(bytes)], { type: mediaType });
  orThrow(await tenant.storage.from(bucket).upload(path, file, { contentType: mediaType }));
}

/** Pages of a text without contents: its outline is doubtful, so that a person is asked. */
const plainBook = ['One Thing First', 'Another Thing After It', 'The Last Thing']
  .map((title) => `${title}\nThis page goes on for a while about rope, wood and weather, as such pages do.`)
  .join('\f');

async function insertBook(campaign: Campaign, choices: Choices): Promise<void> {
  const { tenant } = campaign;
  const isPdf = choices.below(4) === 0;
  const file: File = isPdf
    ? { name: 'pdf', bytes: await smallBookPdf(), mediaType: 'application/pdf' }
    : { name: 'txt', bytes: plainBook, mediaType: 'text/plain' };
  const id = randomUUID();
  const path = `${tenant.account}/${id}.${file.name}`;
  await upload(campaign, 'books', path, file);
  const row = { id, account_id: tenant.account, title: 'A book', source_path: path, media_type: file.mediaType };
  orThrow(await tenant.rows.from('books').insert(row));
  await queue(campaign, 'books', 'split', [id]);
}

async function queueLeads(campaign: Campaign, choices: Choices): Promise<void> {
  const stage = choices.below(3) > 0 ? 'scrape' : (choices.oneOf(roots.leads.stages) as string);
  const ids = await campaign.ids('leads');
  const chosen = ids.filter(() => choices.below(2) === 0);
  if (chosen.length > 0) await queue(campaign, 'leads', stage, chosen);
}

async function queueOne(campaign: Campaign, choices: Choices, pipeline: RootName): Promise<void> {
  const id = choices.oneOf(await campaign.ids(roots[pipeline].table));
  const stage = choices.below(2) === 0 ? roots[pipeline].stages[0] : choices.oneOf(roots[pipeline].stages);
  if (id) await queue(campaign, pipeline, stage as string, [id]);
}

async function startAnew(campaign: Campaign, choices: Choices): Promise<void> {
  const found = await campaign.row(choices);
  if (!found) return;
  await campaign.chaos.rows('select millrace.start($1, $2, p_restart => true)', [found.pipeline, found.id]);
}

async function verb(campaign: Campaign, step: Step, where: string, statement: string, mark?: 'cancelled') {
  const run = await campaign.run(step, where);
  if (!run) return;
  if (mark) campaign.cancelled.add(run.entity);
  await campaign.chaos.rows(statement, [run.id]);
}

async function skipStage(campaign: Campaign, choices: Choices, step: Step): Promise<void> {
  const run = await campaign.run(step, `r.status = 'running'`);
  const stages = run && run.pipeline in roots ? roots[run.pipeline as RootName].stages : [];
  const stage = choices.oneOf(stages);
  if (!run || !stage) return;
  campaign.cancelled.add(run.entity);
  await campaign.chaos.rows('select millrace.skip($1, $2)', [run.id, stage]);
}

async function deleteRow(campaign: Campaign, choices: Choices): Promise<void> {
  const found = await campaign.row(choices);
  if (found) orThrow(await campaign.tenant.rows.from(found.table).delete().eq('id', found.id));
}

async function decide(campaign: Campaign, choices: Choices): Promise<void> {
  const open = await campaign.chaos.asAdmin<{ attempt_id: string }>(
    'select attempt_id from public.millrace_decisions where closed_at is null order by attempt_id',
  );
  const asked = choices.oneOf(open);
  const p_decision = { keep: choices.oneOf(['all', 'contents', 'headings']) };
  if (!asked) return;
  orThrow(await campaign.tenant.rows.rpc('millrace_decide', { p_attempt: asked.attempt_id, p_decision }));
}

/** A transaction of a user's that holds a row for a while, and has nothing else to do with the engine. */
async function holdRow(campaign: Campaign, choices: Choices): Promise<void> {
  const found = await campaign.row(choices);
  if (!found) return;
  const session = new pg.Client({ connectionString: campaign.chaos.stack.dbUrl });
  session.on('error', () => {});
  await session.connect();
  const hold = async () => {
    await session.query('begin');
    await session.query(`select from public.${found.table} where id = $1 for update`, [found.id]);
    await pause(choices.oneOf([200, 500, 1000]));
    await session.query('commit');
  };
  // Beside the steps, some of which wait for the row.
  const held = campaign.attempt('hold a row', hold).then(() => session.end().catch(() => {}));
  campaign.beside.push(held);
}
