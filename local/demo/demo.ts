// npm run demo: a pipeline from one SQL update to its end, on a stack of its own.
import pc from 'picocolors';
import { argumentsOrExit, refuseKeptByNpm } from '../../tools/command-arguments.ts';
import { demos } from './demos.ts';
import { readArguments, usage } from './read-arguments.ts';

const given = argumentsOrExit(usage, () => {
  refuseKeptByNpm('demo', ['keep', 'url', 'sheet']);
  return readArguments(process.argv.slice(2));
});
const ending = new AbortController();
// "disconnect": the process that started this has died.
for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect']) process.on(event, () => ending.abort());
try {
  const run = await demos[given.demo]();
  process.exitCode = await run(given, ending.signal);
} catch (error) {
  // Ctrl-C during the start ends the programs that prepare the database, too: their error is not printed.
  if (!ending.signal.aborted) console.error(pc.red((error as Error).message));
  process.exitCode = ending.signal.aborted ? 130 : 1;
}
process.exit();
