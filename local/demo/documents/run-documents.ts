// The demo of the documents pipelines, on a stack of its own.
import pc from 'picocolors';
import { readSettings } from '../../platform/settings.ts';
import { heading, onAStack, print } from '../on-a-stack.ts';
import { printCosts } from '../print-costs.ts';
import { demoSettings } from '../settings.ts';
import { stuck } from '../watch-progress.ts';
import { addDocuments, readDocumentSources } from './document-source.ts';
import { documentSteps } from './next-steps-documents.ts';
import {
  type FinishedDocument,
  printDocuments,
  printEntities,
  printFailedDocuments,
  printJobs,
  readFinishedDocuments,
} from './report-documents.ts';
import { watchDocuments } from './watch-documents.ts';

const startStatement = "update document set extraction_status = 'queued';";
const costs = {
  view: 'document_costs',
  by: ['clerk_org_id', 'source_platform'],
  entities: 'documents',
  prices: ['LLM_PRICE_INPUT', 'LLM_PRICE_OUTPUT', 'DEEPGRAM_PRICE_MINUTE'],
};

/** Runs the documents pipelines on the named files, or on the samples. Resolves to the exit code. */
export async function runDocuments(
  { keep, files }: { keep: boolean; files: string[] },
  ending: AbortSignal,
): Promise<number> {
  const sources = await readDocumentSources(files);
  const settings = demoSettings(readSettings(), 'documents');
  const title = 'Millrace: from files of any kind to a knowledge graph, on Supabase without Docker';
  return onAStack({ title, settings, keep, ending }, async (stack, watching) => {
    const { client } = watching;
    const what = files.length > 0 ? count(sources.length, 'file') : `${sources.length} sample files`;
    heading(`2. ${what}, uploaded to Storage and started by one SQL update`);
    const refused = await addDocuments(sources, stack);
    for (const { name, reason } of refused) print(pc.red(`  ${name} was not uploaded: ${reason}`));
    print(`  ${pc.cyan(startStatement)}\n`);
    await client.query(startStatement);
    const over = await watchDocuments(watching);
    if (ending.aborted) return undefined;

    const documents = await readFinishedDocuments(client);
    const unfinished = documents.filter(({ status }) => status !== 'completed');
    const failed = [
      ...refused.map(({ name, reason }) => ({ name, phase: 'upload', status: 'failed', error: reason, retry: null })),
      ...unfinished,
    ];
    const broken = new Set(sources.filter(({ shouldSucceed }) => !shouldSucceed).map(({ name }) => name));
    heading('3. What came of them');
    printDocuments(documents, print);
    if (failed.length > 0) print('');
    printFailedDocuments(failed, broken, keep, print);
    heading('4. Who and what most documents name, with facts and where they stand');
    await printEntities(client, print);
    heading('5. What it cost, by organisation and platform');
    await printCosts(client, costs, settings.isFree, print);
    heading('6. The documents’ jobs, as pipeline_job shows them');
    await printJobs(client, print);
    return {
      subject: {
        name: 'Runs',
        count: ({ runs, children, finished }) =>
          `${runs}${children > 0 ? ', of documents and their chunks' : ''}; ${finished} completed`,
        last: 'fact',
        before: { Documents: documentCounts(documents, unfinished, refused.length) },
      },
      failed: !over || failed.some(({ name }) => !broken.has(name)),
      complaint: over ? undefined : stuck,
      nextSteps: documentSteps(),
    };
  });
}

/** Returns how many documents there are, and what came of them, in words. */
function documentCounts(documents: FinishedDocument[], unfinished: FinishedDocument[], notUploaded: number): string {
  const failed = unfinished.filter(({ status }) => status === 'failed').length;
  const counts = {
    completed: documents.length - unfinished.length,
    failed,
    unfinished: unfinished.length - failed,
    'not uploaded': notUploaded,
  };
  const told = Object.entries(counts).filter(([what, n]) => n > 0 || what === 'completed' || what === 'failed');
  return `${documents.length + notUploaded}: ${told.map(([what, n]) => `${n} ${what}`).join(', ')}`;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
