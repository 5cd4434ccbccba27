import pc from 'picocolors';
import type { Stack } from '../stack.ts';

const queries: [string, string][] = [
  ['select * from book_pipeline_status;', 'where each book stands, pages by stage'],
  ["select number, blend_result ->> 'text' from pages order by 1;", 'the pages’ text'],
  ['select * from pipeline.timeline(1);', 'the book’s attempts: what began when'],
  ['select * from pipeline.fan_outs;', 'children spawned, completed, failed'],
  ['select * from pipeline.agent_log;', 'what the agent asked and was told'],
  ['select * from pipeline.stage_health;', 'what is ready, in work and failed'],
];
const startOver = "update books set headings_status = 'queued';";

/** Prints where to look next: addresses while the stack stays up, the way to keep it up otherwise. */
export function printBookSteps(keep: boolean, stack: Stack, links: string[], print: (line: string) => void): void {
  const width = Math.max(...queries.map(([query]) => query.length)) + 2;
  print(`\n${pc.bold('Where to look next')}`);
  if (keep) {
    const addresses = { Database: stack.dbUrl, API: stack.apiUrl, 'Secret key': stack.secretKey };
    for (const [name, value] of Object.entries(addresses)) print(`  ${pc.dim(name.padEnd(14))}${value}`);
    for (const link of links) print(`  ${pc.dim('Document'.padEnd(14))}${link}`);
    print('\n  In the database, as in Supabase Studio’s SQL editor:');
  } else {
    print(`  ${pc.cyan('npm run demo -- books --keep')} stays up, with links to the document, and for SQL such as:`);
  }
  for (const [query, meaning] of queries) print(`    ${pc.cyan(query.padEnd(width))}${pc.dim(meaning)}`);
  print(`    ${pc.cyan(startOver.padEnd(width))}${pc.dim('that stage and all after it once more')}`);
  print(`  ${pc.cyan('npm run demo -- books FILE')} does the same for a PDF or a plain text of your own.`);
  if (keep) print(pc.bold('\nIt stays up until Ctrl-C.'));
}
