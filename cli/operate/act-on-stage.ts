// millrace pause, unpause and throttle: a pipeline, a stage, or a limit that several share.

import { verbs } from '../../operators/verbs.ts';
import { CommandError } from '../command-error.ts';
import { asCommands } from '../project/as-commands.ts';
import { type Context, defined, defineOperate, numberIn, numberOf, textOf } from './context.ts';
import { moment } from './moments.ts';
import { line, say } from './say.ts';
import { words } from './table.ts';

const switching = (verb: 'pause' | 'unpause') =>
  defineOperate({
    usage: `npx millrace ${verb} PIPELINE [STAGE] [--reason TEXT] [--remote[=REF]]\n  ${verbs[verb].says}`,
    words: 2,
    takes: ['reason'],
    run: (context) => switchStage(verb, context),
  });

export const pause = switching('pause');
export const unpause = switching('unpause');

async function switchStage(verb: 'pause' | 'unpause', context: Context): Promise<0> {
  const [pipeline, stage] = context.words;
  if (!pipeline) throw new CommandError('Name a pipeline, or a pipeline and a stage.', 2);
  const request = defined({ verb, pipeline, stage, reason: textOf(context, 'reason') });
  const done = await context.api.act<{ journal_entry: number; now?: string }>(request);
  const what = [pipeline, stage].filter(Boolean).map(words).join('.');
  say(context, done, () => [
    line(
      verb === 'pause'
        ? `${what} is paused: what is in work goes on, what comes in waits.`
        : done.now
          ? `${what} is switched on, but does not go on as a whole: ${words(asCommands(done.now))}`
          : `${what} goes on.`,
    ),
  ]);
  return 0;
}

/** Returns the rate that "10/60" is: ten starts in sixty seconds. */
function rateIn(text: string): { count: number; per_seconds: number } {
  const [, many, seconds] = /^(\d+)\/(\d+)s?$/.exec(text) ?? [];
  if (!many || !seconds) throw new CommandError('--rate is COUNT/SECONDS, such as 10/60.', 2);
  return { count: numberIn(many, '--rate'), per_seconds: numberIn(seconds, '--rate') };
}

export const throttle = defineOperate({
  usage: `npx millrace throttle PIPELINE STAGE --rate COUNT/SECONDS --minutes N --reason TEXT [--remote[=REF]]
  Holds over the definition's limits for so long; what is in work goes on.
  --in-flight N   so many at once, in place of --rate or beside it
  --shared LIMIT  a limit that several stages share, in place of PIPELINE STAGE
  --end           ends the throttle`,
  words: 2,
  takes: ['rate', 'in-flight', 'minutes', 'reason', 'shared', 'end'],
  run: throttleStage,
});

async function throttleStage(context: Context): Promise<0> {
  const [pipeline, stage] = context.words;
  const shared = textOf(context, 'shared');
  if (shared === undefined ? !stage : pipeline)
    throw new CommandError('Name a pipeline and a stage, or --shared LIMIT.', 2);
  const place = shared === undefined ? { pipeline, stage } : { limit: shared };
  const what = words(shared ?? `${pipeline}.${stage}`);
  const reason = textOf(context, 'reason');
  if (context.values.end) {
    const request = defined({ verb: 'unthrottle', ...place, reason });
    say(context, await context.api.act(request), () => [line(`${what} goes by its definition again.`)]);
    return 0;
  }
  const rate = textOf(context, 'rate');
  const limits = defined({
    rate: rate === undefined ? undefined : rateIn(rate),
    max_in_flight: numberOf(context, 'in-flight'),
  });
  const minutes = numberOf(context, 'minutes');
  if (Object.keys(limits).length === 0)
    throw new CommandError('Say how much: --rate COUNT/SECONDS, --in-flight N, or both.', 2);
  if (minutes === undefined || !reason)
    throw new CommandError('Say for how long, --minutes N, and why, --reason TEXT.', 2);
  const done = await context.api.act<{ until: string }>({ verb: 'throttle', ...place, limits, minutes, reason });
  say(context, done, () => [line(`${what} is throttled until ${moment(done.until)}; what is in work goes on.`)]);
  return 0;
}
