// millrace logs: the log lines that the newest attempts of a run have kept, the oldest first.
import pc from 'picocolors';
import type { Attempt, Run } from '../../operators/answers.ts';
import { many } from '../../operators/numbers.ts';
import { visible } from '../../operators/visible.ts';
import { CommandError } from '../command-error.ts';
import { type Context, defineOperate, numberIn, textOf } from './context.ts';
import { moment } from './moments.ts';
import { faultText, line, readLists, say } from './say.ts';
import { terminalWidth, words, wrap } from './table.ts';

/** How many of a run's attempts the API answers with their log. */
const withLog = 10;

const none =
  'No attempt has kept log lines, or you may not see payloads. Those of other attempts are in the function’s log.';

export const logs = defineOperate({
  usage: `npx millrace logs RUN [--remote[=REF]]
  The last log lines of a run's ${withLog} newest attempts, the oldest first: of those that failed, and of all where the stage
  says keepLog: 'every'. Names older ones that failed.
  --stage S  of this stage alone`,
  words: 1,
  takes: ['stage'],
  run: tellLogs,
});

async function tellLogs(context: Context): Promise<0> {
  const [word] = context.words;
  if (word === undefined) throw new CommandError('Name a run.', 2);
  const stage = textOf(context, 'stage');
  const run = await readLists<Run>(context.api, 'run', { run: numberIn(word, 'RUN') }, 'attempts');
  const isWanted = (of: Attempt) => stage === undefined || of.stage === stage;
  const tries = run.attempts.filter((of) => (of.log || goneOf(of)) && isWanted(of));
  const older = run.attempts.slice(0, -withLog).filter((of) => of.state === 'failed' && !goneOf(of) && isWanted(of));
  const ids = older.map(({ attempt }) => attempt);
  say(context, { run: run.run, attempts: tries, older: ids }, () => [
    ...(ids.length > 0
      ? wrap(
          `Of failed tries before the newest ${withLog}: npx millrace show --attempt N, for ${ids.join(', ')}.`,
          terminalWidth(),
        )
      : []),
    ...(tries.length === 0 && ids.length === 0 ? wrap(none, terminalWidth()) : tries.flatMap(linesOf)),
  ]);
  return 0;
}

/** Says of a failed try that its log was deleted. */
const goneOf = ({ state, deleted_after: days }: Attempt) =>
  state === 'failed' && days ? `Its log was deleted after ${many(days, 'day')}.` : undefined;

function linesOf(of: Attempt): string[] {
  const { attempt, stage, number, ended_at, error } = of;
  const log = of.log ?? goneOf(of) ?? '';
  return [
    pc.bold(line(`attempt ${attempt} at ${words(stage)}, try ${number}, ${moment(ended_at ?? null)}`)),
    ...(error ? [pc.red(line(words(faultText(error))))] : []),
    ...log.split('\n').map((text) => `  ${visible(text)}`),
  ];
}
