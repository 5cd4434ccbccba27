// millrace journal: who did what, when, why and to how many.
import type { JournalEntry } from '../../operators/answers.ts';
import { type Context, defined, filterOf, numberOf, pipelineOf, textOf } from './context.ts';
import { moment } from './moments.ts';
import { definePlaced, placeOf } from './open-place.ts';
import { moreLine } from './runs.ts';
import { readLists, say } from './say.ts';
import { type Column, table, terminalWidth, words } from './table.ts';

const columns: Column[] = [
  { head: 'line', right: true, goes: 2 },
  { head: 'when' },
  { head: 'who', least: 8 },
  { head: 'verb' },
  { head: 'of', least: 8 },
  { head: 'runs', right: true, goes: 1 },
  { head: 'why', least: 12, wraps: true },
];

/** Returns the object of a journal entry: a pipeline and stage, with the bulk, the one run, or an object such as an alert. */
function about({ pipeline, stage, run_ids = [], bulk, outcome = {} }: JournalEntry): string {
  const place = [pipeline, stage].filter(Boolean).join('.');
  const one = bulk ? `bulk ${bulk}` : run_ids.length === 1 ? `run ${run_ids[0]}` : '';
  const [other] = ['alert', 'silence', 'limit', 'channel', 'subject'].filter((name) => outcome[name] !== undefined);
  return [place, one || (other && `${other} ${outcome[other]}`)].filter(Boolean).join(' ');
}

export function journalRows(entries: JournalEntry[], width: number): string[] {
  const rows = entries.map((of) => [
    String(of.journal_entry),
    moment(of.at),
    words(of.by),
    words(of.verb),
    words(about(of)),
    of.runs && of.runs > 1 ? String(of.runs) : '',
    words(of.reason),
  ]);
  return table(columns, rows, width);
}

export const journal = definePlaced({
  usage: `npx millrace journal [PIPELINE] [--remote[=REF]]
  Who did what, when, why and to how many, the newest first.
  --run N --bulk N --by WHO --verb VERB --since 2h --before TIME --limit N (20), --cursor NEXT`,
  words: 1,
  takes: ['pipeline', 'run', 'bulk', 'by', 'verb', 'since', 'before', 'limit', 'cursor'],
  place: () => placeOf('journal'),
  run: listLines,
});

async function listLines(context: Context): Promise<0> {
  const { since, before } = filterOf(context);
  const query = defined({
    pipeline: pipelineOf(context),
    run: numberOf(context, 'run'),
    bulk: numberOf(context, 'bulk'),
    by: textOf(context, 'by'),
    verb: textOf(context, 'verb'),
    since,
    before,
    limit: numberOf(context, 'limit') ?? 20,
    cursor: textOf(context, 'cursor'),
  });
  const answer = await readLists<{ entries: JournalEntry[]; next: string | null }>(
    context.api,
    'journal',
    query,
    'entries',
  );
  say(context, answer, () => [
    ...(answer.entries.length > 0 ? journalRows(answer.entries, terminalWidth()) : ['The journal has no such entry.']),
    ...moreLine(answer.next),
  ]);
  return 0;
}
