// millrace retry, cancel, reset, skip, fail and hurry: of the runs that are named, or of all that a filter finds.
import { many } from '../../operators/numbers.ts';
import { isNeeded, type RunVerb, verbs } from '../../operators/verbs.ts';
import { CommandError } from '../command-error.ts';
import { abortBulk, actInBulk } from './act-in-bulk.ts';
import {
  type Context,
  defined,
  defineOperate,
  filterOf,
  filterOptions,
  filterUsage,
  numberIn,
  numberOf,
  type OptionName,
  textOf,
} from './context.ts';
import { line, say } from './say.ts';
import { words } from './table.ts';

/** `own`: the options of the verb's own, as its usage has them, which `also` explains. */
const onRuns = (verb: RunVerb, own: string, also: string, ...takes: OptionName[]) =>
  defineOperate({
    usage: `npx millrace ${verb} RUN … ${own}[--reason TEXT] [--remote[=REF]]
npx millrace ${verb} --pipeline P [FILTER] ${own}[--yes --reason TEXT]
  ${verbs[verb].says}${also}
  Over a filter it shows first how many, and asks; --yes is for scripts.
${filterUsage}`,
    words: Number.POSITIVE_INFINITY,
    takes: [...filterOptions, 'reason', 'yes', ...takes],
    run: (context) => actOnRuns(verb, context),
  });

export const retry = onRuns('retry', '', '');
export const cancel = onRuns(
  'cancel',
  '',
  ' With --bulk N in the place of RUN it ends a bulk; what that has done stays done.',
  'bulk',
);
export const reset = onRuns('reset', '[--from STAGE] ', ' Without --from the whole run.', 'from');
export const skip = onRuns('skip', '--stage STAGE ', '');
export const fail = onRuns(
  'fail',
  '--stage STAGE --message TEXT [--permanent] ',
  ' TEXT is the error.',
  'message',
  'permanent',
);
export const hurry = onRuns('hurry', '', '');

/**
 * The request for a verb. Its stage: for reset the one of --from; in bulk only verbs that need one have one, since for the
 * others --stage is part of the filter.
 */
function actionOf(verb: RunVerb, context: Context, inBulk: boolean): Record<string, unknown> {
  const stage = textOf(context, 'stage');
  const own = verb === 'reset' ? textOf(context, 'from') : inBulk && !isNeeded(verb, 'stage') ? undefined : stage;
  if (isNeeded(verb, 'stage') && !stage) throw new CommandError(`${verb} needs --stage.`, 2);
  if (verb === 'fail' && !textOf(context, 'message'))
    throw new CommandError('fail needs --message TEXT, the error.', 2);
  return defined({
    verb,
    stage: own,
    message: textOf(context, 'message'),
    permanent: context.values.permanent === true ? true : undefined,
  });
}

/** Does a verb. Resolves to 1 where a bulk met faults. */
async function actOnRuns(verb: RunVerb, context: Context): Promise<0 | 1> {
  const bulk = numberOf(context, 'bulk');
  const filter = filterOf(context);
  if (bulk !== undefined) {
    if (context.words.length + Object.keys(filter).length > 0)
      throw new CommandError('Name runs, a filter or --bulk N: one of them.', 2);
    return abortBulk(context, bulk);
  }
  if (context.words.length === 0) return actInBulk(context, actionOf(verb, context, true), filter);
  const { stage, ...others } = filter;
  if (Object.keys(others).length > 0) throw new CommandError('Name runs, or a filter, not both.', 2);
  const action = actionOf(verb, context, false);
  const runs = context.words.map((word) => numberIn(word, 'RUN'));
  for (const run of runs) {
    const done = await context.api.act<{ status: string; journal_entry: number; attempts?: number }>(
      defined({ ...action, run, reason: textOf(context, 'reason') }),
    );
    const retries = many(done.attempts ?? 0, 'retry that goes', 'retries that go');
    const what = done.attempts === undefined ? `is ${done.status}` : `has ${retries} at once`;
    say(context, done, () => [line(`Run ${run} ${words(what)} (entry ${done.journal_entry} of the journal).`)]);
  }
  return 0;
}
