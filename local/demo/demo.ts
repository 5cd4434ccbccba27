// npm run demo: a pipeline from one SQL update to its end, on a stack of its own.
import pc from 'picocolors';
import { argumentsOrExit, refuseKeptByNpm } from '../../tools/command-arguments.ts';
import { readArguments, usage } from './read-arguments.ts';

const given = argumentsOrExit(usage, () => {
  refuseKeptByNpm('demo', ['keep', 'url', 'sheet']);
  return readArguments(process.argv.slice(2));
});
// Loaded here, because each has libraries of its own, and wrong arguments are told at once.
const run = async () => {
  if (given.demo === 'books') return (await import('./books/run-books.ts')).runBooks(given, ending.signal);
  if (given.demo === 'documents')
    return (await import('./documents/run-documents.ts')).runDocuments(given, ending.signal);
  if (given.demo === 'articles') return (await import('./articles/run-articles.ts')).runArticles(given, ending.signal);
  if (given.demo === 'links') return (await import('./links/run-links.ts')).runLinks(given, ending.signal);
  return (await import('./leads/run-leads.ts')).runLeads(given, ending.signal);
};
const ending = new AbortController();
// "disconnect": the process that started this has died.
for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect']) process.on(event, () => ending.abort());
try {
  process.exitCode = await run();
} catch (error) {
  // Ctrl-C while starting ends the programs that prepare the database too: no failure worth telling.
  if (!ending.signal.aborted) console.error(pc.red((error as Error).message));
  process.exitCode = ending.signal.aborted ? 130 : 1;
}
process.exit();
