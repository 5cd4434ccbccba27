// A verb over all runs that match a filter: first how many, then its way, which goes on without the terminal.
import readline from 'node:readline/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pc from 'picocolors';
import type { Bulk } from '../../operators/answers.ts';
import { count, forecast, many } from '../../operators/numbers.ts';
import { CommandError } from '../command-error.ts';
import { type Context, defined, textOf } from './context.ts';
import { moment } from './moments.ts';
import { inertJson, line, say } from './say.ts';
import { shellWord, words } from './table.ts';

/** Previews a bulk, asks, begins it and follows it to its end. Resolves to 1 where it met faults. */
export async function actInBulk(
  context: Context,
  action: Record<string, unknown>,
  filter: Record<string, unknown>,
): Promise<0 | 1> {
  const reason = textOf(context, 'reason');
  if (!filter.pipeline) throw new CommandError('Name runs, or --pipeline and what else all of them have in common.', 2);
  if (context.values.yes && !reason) throw new CommandError('--yes needs --reason TEXT, which the journal keeps.', 2);
  const preview = await context.api.act<Bulk>({ verb: 'preview', do: action, filter, ...(reason && { reason }) });
  if (preview.preview.runs === '0') {
    const pipeline = shellWord(String(filter.pipeline));
    say(context, preview, () => [
      'No run matches; nothing was done.',
      // The usual cause is a misspelt name.
      pc.dim(`Look: npx millrace dead ${pipeline}, npx millrace runs ${pipeline}`),
    ]);
    return 0;
  }
  const why = context.values.yes ? reason : await consent(context, preview, reason);
  if (why === undefined) {
    const reason = 'not wanted after the preview';
    const { done } = await context.api.act<Bulk>({ verb: 'abort', bulk: preview.bulk, reason });
    say(context, preview, () => [done > 0 ? 'Nothing more was done.' : 'Nothing was done.']);
    return 0;
  }
  await context.api.act(defined({ verb: 'begin', bulk: preview.bulk, reason: why }));
  return follow(context, preview.bulk);
}

/** Returns the lines of a preview: the verb, how many runs and of when, the filter, and the cost where it is known. */
function previewLines({ do: action, filter, preview }: Bulk): string[] {
  const { pipeline, before, ...others } = filter;
  const about = Object.entries({ pipeline, ...others });
  const cost = forecast(preview);
  const stage = action.stage ? ` at ${words(action.stage)}` : '';
  return [
    pc.bold(
      line(
        `${action.verb}${stage}: ${many(preview.runs, 'run')}, the oldest of ${moment(preview.oldest)}, the newest of ${moment(preview.newest)}`,
      ),
    ),
    line(
      `of ${about.map(([name, value]) => `${name} ${words(typeof value === 'string' ? value : JSON.stringify(value))}`).join(', ')}`,
    ),
    ...(cost ? [`It costs ${cost}, by what its stages have cost in the mean; children are not in it.`] : []),
  ];
}

/** Asks at the terminal. Resolves to the reason; undefined where the answer is no. */
async function consent(context: Context, preview: Bulk, given: string | undefined): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stdout.isTTY || context.json) {
    process.stdout.write(`${context.json ? inertJson(preview) : previewLines(preview).join('\n')}\n`);
    await context.api.act({ verb: 'abort', bulk: preview.bulk, reason: 'nobody there to ask' });
    throw new CommandError('Nothing was done, since nobody can be asked here: say --yes --reason TEXT.', 2);
  }
  process.stdout.write(`${previewLines(preview).join('\n')}\n`);
  const terminal = readline.createInterface({ input: process.stdin, output: process.stdout });
  // Ctrl-C and ctrl-D answer no.
  const closed = new Promise<undefined>((resolve) => terminal.once('close', () => resolve(undefined)));
  const ask = (question: string) => Promise.race([terminal.question(question).catch(() => undefined), closed]);
  try {
    const question = `${preview.do.verb} ${many(preview.preview.runs, 'run')}, or 1 to try one first? [y/N] `;
    let answer = await ask(question);
    for (; answer?.trim() === '1'; answer = await ask(question)) {
      const { tried, ...one } = await context.api.act<Bulk>(
        defined({ verb: 'try', bulk: preview.bulk, reason: given }),
      );
      const look = tried ? `, npx millrace show ${tried} tells what came of it` : '';
      process.stdout.write(`${progress({ ...one, preview: preview.preview })}${look}\n`);
    }
    if (!/^y(es)?$/i.test(answer?.trim() ?? '')) return undefined;
    return given ?? ((await ask('Why? '))?.trim() || undefined);
  } finally {
    terminal.close();
  }
}

const goesOn = (bulk: number) => `Bulk ${bulk} goes on by itself; npx millrace cancel --bulk ${bulk} ends it.`;

/** Helps a bulk on until it is over, and tells how far it is. */
async function follow(context: Context, bulk: number): Promise<0 | 1> {
  const isShown = process.stdout.isTTY && !context.json;
  const leave = () => {
    process.stdout.write(`\n${goesOn(bulk)}\n`);
    process.exit(130);
  };
  process.once('SIGINT', leave);
  for (let before = -1; ; ) {
    const look = () => context.api.act<Bulk>({ verb: 'continue', bulk });
    const now = await look()
      .catch(look)
      .catch(({ message, exitCode }: CommandError) => {
        throw new CommandError(`${message}\n${goesOn(bulk)}`, exitCode);
      });
    const come = now.done + now.passed_over + now.faults;
    if (isShown) process.stdout.write(`\r\u001b[K${line(progress(now))}`);
    if (now.state !== 'running') {
      process.off('SIGINT', leave);
      if (isShown) process.stdout.write('\r\u001b[K');
      say(context, now, () => [progress(now), ...faultLines(now)]);
      return now.state === 'done' && now.faults === 0 ? 0 : 1;
    }
    // Other transactions hold the runs that are left.
    if (come === before) await delay(1000);
    before = come;
  }
}

const progress = (bulk: Bulk) =>
  `bulk ${bulk.bulk} is ${bulk.state}: ${count(bulk.done)} of ${bulk.preview.runs} done, ` +
  `${count(bulk.passed_over)} passed over, ${many(bulk.faults, 'fault')}`;

const faultLines = ({ faults_by_run = [] }: Bulk) =>
  faults_by_run
    .slice(0, 10)
    .map(({ run, code, message }) => pc.red(line(`  run ${run}: ${words(code)}: ${words(message)}`)));

/** Ends a bulk; what it has done stays done. */
export async function abortBulk(context: Context, bulk: number): Promise<0> {
  const ended = await context.api.act<Bulk>(defined({ verb: 'abort', bulk, reason: textOf(context, 'reason') }));
  say(context, ended, () => [progress(ended)]);
  return 0;
}
