// `npm run bench`: measures Millrace, a hand-written floor and two other queues on the embedded Postgres with fsync on.
// `-- --json` prints one JSON line per result, `--work=KIND` measures one of `kinds` alone.
// `--beside=DIR` measures cold starts and lines with a stack of their own in another checkout too, which needs its node_modules.
// `--only=TEXT` takes only those of these lines whose names contain it, `--rounds=N` measures them N times (once), `--minutes=N` is how
// long the idle stack is watched (5).
import os from 'node:os';
import { parseArgs } from 'node:util';
import { chain } from './chain/chain.ts';
import { coldStart } from './cold-start/cold-start.ts';
import { cost } from './cost/cost.ts';
import { startBenchDatabase } from './database.ts';
import { fanOut } from './fan-out/fan-out.ts';
import { gate } from './gate/gate.ts';
import { hop } from './hop/hop.ts';
import { idle } from './idle/idle.ts';
import { intake } from './intake/intake.ts';
import { installPeers, workerNode } from './node-program.ts';
import { operate } from './operate/operate.ts';
import { lineTables, type Measured, type Result, table } from './results.ts';
import { sheet } from './sheet/sheet.ts';
import { through } from './through/through.ts';
import { wait } from './wait/wait.ts';
import { watch } from './watch/watch.ts';

const kinds = [
  'chain',
  'fan-out',
  'hop',
  'intake',
  'gate',
  'cold-start',
  'operate',
  'watch',
  'sheet',
  'wait',
  'through',
  'idle',
  'cost',
];
const withDatabase = ['chain', 'fan-out', 'intake', 'gate', 'operate', 'watch'];

function readArguments() {
  const text = { type: 'string' } as const;
  const named = { work: text, beside: text, only: text, rounds: text, minutes: text };
  const { values } = parseArgs({ options: { json: { type: 'boolean' }, ...named } });
  const { json = false, work, beside, only } = values;
  if (work !== undefined && !kinds.includes(work)) {
    throw new Error(`--work is "${work}", but must be one of ${kinds.join(', ')}; leave it out for all.`);
  }
  const wholeNumber = (name: 'rounds' | 'minutes', otherwise: number) => {
    const number = Number(values[name] ?? otherwise);
    if (Number.isInteger(number) && number >= 1) return number;
    throw new Error(`--${name} is "${values[name]}", but must be a whole number from 1.`);
  };
  const [rounds, minutes] = [wholeNumber('rounds', 1), wholeNumber('minutes', 5)];
  return { json, works: work === undefined ? kinds : [work], beside, only, rounds, minutes };
}

const progress = (message: string) => console.error(`bench: ${message}`);
const { json, works, beside, only, rounds, minutes } = readArguments();
const results: Result[] = [];
const report = (found: Result[]) => {
  results.push(...found);
  if (json) for (const result of found) console.log(JSON.stringify(result));
};
const lines: Measured[] = [];
const reportLines = (found: Measured[]) => {
  lines.push(...found);
  if (json) for (const { values, ...line } of found) console.log(JSON.stringify({ ...line, ...values }));
};
const choice = { only, rounds, beside, progress };

if (works.some((work) => withDatabase.includes(work))) {
  const database = await startBenchDatabase();
  try {
    if (works.includes('chain') || works.includes('fan-out')) installPeers(progress);
    if (works.includes('chain')) report(await chain(database, workerNode(), progress));
    if (works.includes('fan-out')) report(await fanOut(database, workerNode(), progress));
    if (works.includes('intake')) report(await intake(database, progress));
    if (works.includes('gate')) report(await gate(database, progress));
    if (works.includes('watch')) report(await watch(database, progress));
    if (works.includes('operate')) report(await operate(database, progress));
  } finally {
    await database.stop();
  }
}

if (works.includes('hop')) report(await hop(progress));
if (works.includes('sheet')) report(await sheet(progress));
if (works.includes('cold-start')) report(await coldStart(beside, progress));
if (works.includes('wait')) reportLines(await wait(choice));
if (works.includes('cost')) reportLines(await cost(choice));
if (works.includes('through')) reportLines(await through(choice));
if (works.includes('idle')) reportLines(await idle({ ...choice, minutes }));

if (!json) {
  const memory = Math.round(os.totalmem() / 2 ** 30);
  console.log(`\n${os.availableParallelism()} cores, ${memory} GB, ${new Date().toISOString().slice(0, 10)}\n`);
  if (results.length > 0) console.log(table(results));
  if (lines.length > 0) console.log(lineTables(lines));
}
