// millrace retry, cancel, reset, skip, fail and hurry: of the runs that are named, or of all that a filter finds.
import { many } from '../../operators/numbers.ts';
import { isNeeded, type RunVerb, verbs } from '../../operators/verbs.ts';
import { CommandError } from '../command-error.ts';
import { abortBulk, actInBulk } from './act-in-bulk.ts';
import {
  type Asked,
  defined,
  defineOperate,
  filterOf,
  filterOptions,
  filterUsage,
  numberIn,
  numberOf,
  type OptionName,
  textOf,
} from './asked.ts';
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
    run: (asked) => actOnRuns(verb, asked),
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
function actionOf(verb: RunVerb, asked: Asked, inBulk: boolean): Record<string, unknown> {
  const stage = textOf(asked, 'stage');
  const own = verb === 'reset' ? textOf(asked, 'from') : inBulk && !isNeeded(verb, 'stage') ? undefined : stage;
  if (isNeeded(verb, 'stage') && !stage) throw new CommandError(`${verb} needs --stage.`, 2);
  if (verb === 'fail' && !textOf(asked, 'message')) throw new CommandError('fail needs --message TEXT, the error.', 2);
  return defined({
    verb,
    stage: own,
    message: textOf(asked, 'message'),
    permanent: asked.values.permanent === true ? true : undefined,
  });
}

/** Does a verb. Resolves to 1 where a bulk met faults. */
async function actOnRuns(verb: RunVerb, asked: Asked): Promise<0 | 1> {
  const bulk = numberOf(asked, 'bulk');
  const filter = filterOf(asked);
  if (bulk !== undefined) {
    if (asked.words.length + Object.keys(filter).length > 0)
      throw new CommandError('Name runs, a filter or --bulk N: one of them.', 2);
    return abortBulk(asked, bulk);
  }
  if (asked.words.length === 0) return actInBulk(asked, actionOf(verb, asked, true), filter);
  const { stage, ...others } = filter;
  if (Object.keys(others).length > 0) throw new CommandError('Name runs, or a filter, not both.', 2);
  const action = actionOf(verb, asked, false);
  const runs = asked.words.map((word) => numberIn(word, 'RUN'));
  for (const run of runs) {
    const done = await asked.api.act<{ status: string; journal_entry: number; attempts?: number }>(
      defined({ ...action, run, reason: textOf(asked, 'reason') }),
    );
    const retries = many(done.attempts ?? 0, 'retry that goes', 'retries that go');
    const what = done.attempts === undefined ? `is ${done.status}` : `has ${retries} at once`;
    say(asked, done, () => [line(`Run ${run} ${words(what)} (entry ${done.journal_entry} of the journal).`)]);
  }
  return 0;
}
