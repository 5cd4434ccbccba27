import pc from 'picocolors';
import type { Stack } from '../stack.ts';

const queries: [string, string][] = [
  ['select * from lead_pipeline_status;', 'where each lead stands'],
  ['select * from pipeline.stage_health;', 'what is ready, in work and failed'],
  ['select * from pipeline.timeline(1);', 'attempts of a run, tokens, errors'],
  ['select * from pipeline.doctor();', 'is it configured, is it healthy'],
];
const startOver = "update leads set intel_status = 'queued' where scrape_status = 'completed';";

/** Prints where to look next: addresses while the stack stays up, the way to keep it up otherwise. */
export function printNextSteps(keep: boolean, stack: Stack, sitesUrl: string, print: (line: string) => void): void {
  const width = Math.max(...queries.map(([query]) => query.length)) + 2;
  print(`\n${pc.bold('Where to look next')}`);
  if (keep) {
    const addresses = {
      Database: stack.dbUrl,
      API: stack.apiUrl,
      'Secret key': stack.secretKey,
      'Sample sites': sitesUrl,
    };
    for (const [name, value] of Object.entries(addresses)) print(`  ${pc.dim(name.padEnd(14))}${value}`);
    print('\n  In the database, as in Supabase Studio’s SQL editor:');
  } else {
    print(`  ${pc.cyan('npm run demo -- --keep')} stays up and prints the database’s address, for SQL such as:`);
  }
  for (const [query, meaning] of queries) print(`    ${pc.cyan(query.padEnd(width))}${pc.dim(meaning)}`);
  print(`    ${pc.cyan(startOver)}`);
  print(`  ${pc.cyan('npm run demo -- --url https://…')} does the same for web sites of your choice.`);
  print('  README.md: Add a stage in ten lines, Deploy to Supabase, Settings.');
  if (keep) print(pc.bold('\nIt stays up until Ctrl-C.'));
}
