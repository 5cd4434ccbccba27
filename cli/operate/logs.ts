// millrace logs: the log lines that the failed tries of a run have kept, the oldest first.
import pc from 'picocolors';
import type { Run } from '../../operators/answers.ts';
import { visible } from '../../operators/visible.ts';
import { CommandError } from '../command-error.ts';
import { type Asked, defineOperate, numberIn, textOf } from './asked.ts';
import { moment } from './moments.ts';
import { faultText, line, readLists, say } from './say.ts';
import { terminalWidth, words, wrap } from './table.ts';

export const logs = defineOperate({
  usage: `npx millrace logs RUN [--remote[=REF]]
  The last log lines of each failed try of a run, the oldest first.
  --stage S  of this stage alone`,
  words: 1,
  takes: ['stage'],
  run: tellLogs,
});

async function tellLogs(asked: Asked): Promise<0> {
  const [word] = asked.words;
  if (word === undefined) throw new CommandError('Name a run.', 2);
  const stage = textOf(asked, 'stage');
  const run = await readLists<Run>(asked.api, 'run', { run: numberIn(word, 'RUN') }, 'attempts');
  const tries = run.attempts.filter((of) => of.log && (stage === undefined || of.stage === stage));
  say(asked, { run: run.run, attempts: tries }, () =>
    tries.length === 0
      ? wrap('No failed try has kept log lines. Those of other tries are in the function’s log.', terminalWidth())
      : tries.flatMap(({ attempt, stage: at, number, ended_at, error, log = '' }) => [
          pc.bold(line(`attempt ${attempt} at ${words(at)}, try ${number}, ${moment(ended_at ?? null)}`)),
          ...(error ? [pc.red(line(words(faultText(error))))] : []),
          ...log.split('\n').map((text) => `  ${visible(text)}`),
        ]),
  );
  return 0;
}
