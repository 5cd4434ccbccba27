// The changes that users make with leads, documents and books, through the Data API, and with rows of any kind.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { sampleDocuments } from '../../local/demo/samples/documents/sample-documents.ts';
import { smallBookPdf } from '../support/examples/small-book.ts';
import { logbookOf } from '../support/stack/documents-stack.ts';
import { type Campaign, type ColumnRoot, orThrow, roots } from './campaign.ts';
import type { Choices } from './plan.ts';

interface File {
  name: string;
  bytes: Uint8Array | string;
  mediaType: string;
}

export const userPlays = {
  'insert leads': insertLeads,
  'insert a document': insertDocument,
  'insert a book': insertBook,
  'queue many leads': queueLeads,
  'queue a document': (campaign: Campaign, choices: Choices) => queueOne(campaign, choices, 'documents'),
  'queue a book': (campaign: Campaign, choices: Choices) => queueOne(campaign, choices, 'books'),
  delete: deleteRow,
  decide,
  'hold a row': holdRow,
};

async function insertLeads(campaign: Campaign, choices: Choices): Promise<void> {
  const { chaos, tenant } = campaign;
  const urls = Array.from({ length: 5 + choices.below(8) }, (_, n) =>
    chaos.parts.site.add([`Harbour office ${n}`, `We mend sails for ${choices.below(90) + 10} boats a year.`]),
  );
  const leads = urls.map((url) => ({ email: 'harbour@example.com', company_url: url, account_id: tenant.account }));
  const inserted = orThrow(await tenant.rows.from('leads').insert(leads).select('id')) ?? [];
  const ids = inserted.map((row) => row.id as string);
  await queue(campaign, 'leads', 'scrape', ids);
}

/** Writes `queued`, as users do; whoever is told that it is done can rely on it. */
export async function queue({ tenant, promised }: Campaign, pipeline: ColumnRoot, stage: string, ids: string[]) {
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
  // Documents are a picture and a recording, which are jobs elsewhere, and texts, which are cheap.
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

async function queueOne(campaign: Campaign, choices: Choices, pipeline: ColumnRoot): Promise<void> {
  const id = choices.oneOf(await campaign.ids(roots[pipeline].table));
  const stage = choices.below(2) === 0 ? roots[pipeline].stages[0] : choices.oneOf(roots[pipeline].stages);
  if (id) await queue(campaign, pipeline, stage as string, [id]);
}

/** Whose rows are their users' own. */
const ownTables = ['leads', 'document', 'books'];

async function deleteRow(campaign: Campaign, choices: Choices): Promise<void> {
  const found = await campaign.row(choices);
  const { tenant, chaos } = campaign;
  const owner = ownTables.includes(found?.table ?? '') ? tenant : chaos.project;
  if (found) orThrow(await owner.rows.from(found.table).delete().eq('id', found.id));
}

async function decide(campaign: Campaign, choices: Choices): Promise<void> {
  const open = await campaign.chaos.asAdmin<{ attempt_id: string }>(
    `select d.attempt_id from public.millrace_decisions d join millrace.attempts a on a.id = d.attempt_id
     join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id
     where d.closed_at is null and p.name = 'books' order by 1`,
  );
  const asked = choices.oneOf(open);
  const p_decision = { keep: choices.oneOf(['all', 'contents', 'headings']) };
  if (!asked) return;
  orThrow(await campaign.tenant.rows.rpc('millrace_decide', { p_attempt: asked.attempt_id, p_decision }));
}

/** A transaction of a user's that holds a row for a while, and has nothing else to do with the engine. */
async function holdRow(campaign: Campaign, choices: Choices): Promise<void> {
  const { chaos } = campaign;
  const found = await campaign.row(choices);
  if (!found) return;
  const held = chaos.session(async (session) => {
    await session.query('begin');
    await session.query(`select from public.${found.table} where id = $1 for update`, [found.id]);
    await pause(choices.oneOf([200, 500, 1000]));
    await session.query('commit');
  });
  campaign.goBeside('hold a row', held);
}
