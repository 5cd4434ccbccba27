// millrace bypass: leaves a stage out for a while, ends that, and takes up the rows that went on without it.
import { many } from '../../operators/numbers.ts';
import { CommandError } from '../command-error.ts';
import { type Context, defined, defineOperate, numberOf, textOf } from './context.ts';
import { moment } from './moments.ts';
import { line, say } from './say.ts';
import { words } from './table.ts';

export const bypass = defineOperate({
  usage: `npx millrace bypass PIPELINE STAGE --reason TEXT [--minutes N] [--remote[=REF]]
  Rows go on without the stage, for so long or until --end: what comes after it gets null as its result. Each is remembered.
  --end        ends the bypass; what was left out stays remembered
  --take-up N  starts so many of those rows at the stage, the oldest first; what comes after it is done again`,
  words: 2,
  takes: ['reason', 'minutes', 'end', 'take-up'],
  run: bypassStage,
});

async function bypassStage(context: Context): Promise<0> {
  const [pipeline, stage] = context.words;
  if (!pipeline || !stage) throw new CommandError('Name a pipeline and a stage.', 2);
  const place = { pipeline, stage };
  const what = words(`${pipeline}.${stage}`);
  const [reason, minutes, most] = [
    textOf(context, 'reason'),
    numberOf(context, 'minutes'),
    numberOf(context, 'take-up'),
  ];
  if ([context.values.end, most, minutes].filter((given) => given !== undefined).length > 1)
    throw new CommandError('Say --minutes, --end or --take-up: one of them.', 2);
  if (context.values.end) {
    const done = await context.api.act(defined({ verb: 'end_bypass', ...place, reason }));
    say(context, done, () => [line(`${what} is worked again; --take-up N starts what was left out.`)]);
  } else if (most !== undefined) {
    const request = defined({ verb: 'take_up', ...place, count: most, reason });
    const done = await context.api.act<{ started: number }>(request);
    say(context, done, () => [
      line(`${what}: ${many(done.started, 'row that was left out has', 'rows that were left out have')} begun there.`),
    ]);
  } else {
    if (!reason) throw new CommandError('Say why: --reason TEXT.', 2);
    const request = defined({ verb: 'bypass', ...place, minutes, reason });
    const done = await context.api.act<{ until: string | null; skipped: number }>(request);
    const end = done.until ? `until ${moment(done.until)}` : 'until --end';
    say(context, done, () => [
      line(`${what} is left out ${end}: ${many(done.skipped, 'row has', 'rows have')} gone on, others follow.`),
    ]);
  }
  return 0;
}
