// millrace alerts and millrace silence: lists alerts, and keeps messages about some of them back for a while.
import pc from 'picocolors';
import { CommandError } from '../command-error.ts';
import { type Context, defined, defineOperate, numberIn, numberOf, pipelineOf, textOf } from './context.ts';
import { moment } from './moments.ts';
import { definePlaced, placeOf } from './open-place.ts';
import { type DescribedAlert, readAlerts } from './read-alerts.ts';
import { moreLine } from './runs.ts';
import { line, say } from './say.ts';
import { type Column, shellWord, table, terminalWidth, words } from './table.ts';

const columns: Column[] = [
  { head: 'alert', right: true },
  { head: 'since' },
  { head: 'until', goes: 1 },
  { head: 'pipeline', least: 8, goes: 3 },
  { head: 'stage', least: 8, goes: 2 },
  { head: 'what', least: 40, wraps: true },
];

export const alerts = definePlaced({
  usage: `npx millrace alerts [PIPELINE] [--all] [--remote[=REF]]
  Alerts that are open, or all, the newest first.
  --limit N (20), --cursor NEXT`,
  words: 1,
  takes: ['pipeline', 'all', 'limit', 'cursor'],
  place: () => placeOf('alerts'),
  run: listAlerts,
});

async function listAlerts(context: Context): Promise<0> {
  const query = defined({
    pipeline: pipelineOf(context),
    open: context.values.all ? undefined : true,
    limit: numberOf(context, 'limit') ?? 20,
    cursor: textOf(context, 'cursor'),
  });
  const answer = await readAlerts(context.api, query);
  say(context, answer, () => {
    if (answer.alerts.length === 0)
      return [context.values.all ? 'There was no alert.' : 'No alert is open.', ...moreLine(answer.next)];
    const rows = answer.alerts.map((of) => [
      String(of.id),
      moment(of.raised_at),
      of.resolved_at ? moment(of.resolved_at) : '',
      words(of.pipeline),
      words(of.stage),
      words(of.message),
    ]);
    const tone = (text: string, row: number) => (answer.alerts[row]?.resolved_at ? pc.dim(text) : text);
    const open = answer.alerts.find(({ resolved_at }) => !resolved_at);
    return [...table(columns, rows, terminalWidth(), tone), ...moreLine(answer.next), ...(open ? nextSteps(open) : [])];
  });
  return 0;
}

/** Returns the lines that tell an operator what to do about an alert, how to look further, and how to silence it. */
export const nextSteps = ({ id, kind, pipeline, playbook }: DescribedAlert) => [
  pc.dim(line(`What to do: ${playbook}`)),
  // The command dead lists only what failed for good; status shows errors that are retried, backlog and spending.
  pc.dim(`Look: npx millrace ${kind === 'dead' ? 'dead' : 'status'}${pipeline ? ` ${shellWord(pipeline)}` : ''}`),
  pc.dim(`It is known: npx millrace silence ${id} --minutes 60 --reason …`),
];

export const silence = defineOperate({
  usage: `npx millrace silence ALERT… --minutes N --reason TEXT [--remote[=REF]]
  Tells nobody of alerts like these for so long; they are raised and listed all the same.
  --pipeline P --stage S --kind K  in place of ALERT; --all for every alert
  --end  ends the silence whose number stands in the place of ALERT`,
  words: 50,
  takes: ['pipeline', 'stage', 'kind', 'minutes', 'reason', 'end', 'all'],
  run: actOnSilence,
});

async function actOnSilence(context: Context): Promise<0> {
  const [word, ...others] = context.words;
  const reason = textOf(context, 'reason');
  const like = defined({
    pipeline: textOf(context, 'pipeline'),
    stage: textOf(context, 'stage'),
    kind: textOf(context, 'kind'),
  });
  if (context.values.end) {
    if (word === undefined || others.length > 0) throw new CommandError('Name the silence that is to end.', 2);
    const request = { verb: 'unsilence', silence: numberIn(word, 'SILENCE'), reason };
    say(context, await context.api.act(defined(request)), () => [`Silence ${word} has ended.`]);
    return 0;
  }
  const minutes = numberOf(context, 'minutes');
  if (word === undefined && Object.keys(like).length === 0 && !context.values.all) {
    throw new CommandError('Name an alert, or --pipeline, --stage or --kind, or say --all.', 2);
  }
  if (word !== undefined && (context.values.all || Object.keys(like).length > 0))
    throw new CommandError('Name an alert, or what it is like: one of them.', 2);
  if (minutes === undefined || !reason)
    throw new CommandError('Say for how long, --minutes N, and why, --reason TEXT.', 2);
  // Reads all numbers first, so that a misspelt one keeps the command from silencing any alert.
  const alerts = word === undefined ? [undefined] : context.words.map((each) => numberIn(each, 'ALERT'));
  for (const alert of alerts) {
    const request = defined({ verb: 'silence', ...like, alert, minutes, reason });
    const done = await context.api.act<{ silence: number; until: string }>(request);
    say(context, done, () => [
      line(
        `Silence ${done.silence} holds until ${moment(done.until)}; npx millrace silence ${done.silence} --end ends it.`,
      ),
    ]);
  }
  return 0;
}
