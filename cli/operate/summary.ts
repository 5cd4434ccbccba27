// How things stand: whether all is well, what is not, and which bulks run, in the lines above every table of stages.
import pc from 'picocolors';
import type { Overview, Well } from '../../operators/answers.ts';
import { sayQuietAlerts, sweepOf, wellOf } from '../../operators/needs.ts';
import { age, count, many } from '../../operators/numbers.ts';
import { sayFault } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { HealthFault } from '../../supabase/functions/_millrace/engine/metrics-contract.ts';
import { CommandError } from '../command-error.ts';
import { callDatabase } from '../project/call-database.ts';
import type { Context } from './context.ts';
import { moment } from './moments.ts';
import { type DescribedAlert, readAlerts } from './read-alerts.ts';
import { line, readLists } from './say.ts';
import { terminalWidth, words, wrap } from './table.ts';

export interface Summary {
  overview: Overview;
  alerts: DescribedAlert[];
}

const mostFaults = 6;

export async function readSummary({ api, target }: Pick<Context, 'api' | 'target'>): Promise<Summary> {
  const [overview, { alerts }] = await Promise.all([
    readLists<Overview>(api, 'overview', { quiet: true }, 'pipelines', 'stages', 'bulks'),
    readAlerts(api, { open: true, limit: 20 }),
  ]);
  const isNew = overview.pipelines.length === 0 || sweepOf(overview, Date.parse(overview.now)).is === 'due';
  const well = isNew ? await wellNow(target) : undefined;
  return { overview: well ? { ...overview, well: { ...wellOf(overview), ...well } } : overview, alerts };
}

/**
 * The findings of a new project as of now, since its sweep has noted none yet. Undefined for a user, who may not ask for them. Throws
 * a CommandError where the database does not answer.
 */
async function wellNow({ url, headers }: Context['target']): Promise<Pick<Well, 'ok' | 'faults' | 'more'> | undefined> {
  try {
    const { ok, faults, more } = await callDatabase<Well>(url, headers, 'millrace_health');
    return Array.isArray(faults) ? { ok, faults, more } : undefined;
  } catch (error) {
    if (error instanceof CommandError && error.exitCode === 3) return undefined;
    throw error;
  }
}

/** Returns the summary of one pipeline: its own faults and alerts, and those that belong to no pipeline. */
export function summaryOf({ overview, alerts }: Summary, pipeline: string | undefined): Summary {
  if (!pipeline) return { overview: { ...overview, well: wellOf(overview) }, alerts };
  const own = (of: { pipeline?: string | null | undefined }) => of.pipeline === pipeline;
  const isOwn = (of: { pipeline?: string | null | undefined }) => own(of) || !of.pipeline;
  const all = wellOf(overview);
  const faults = all.faults.filter(isOwn);
  const pipelines = overview.pipelines.filter(own);
  const ok = faults.length === 0 && all.more === 0;
  // Without a fault each open alert of the pipeline is quiet; beside one, some may share its cause.
  const quiet_alerts = ok ? pipelines.reduce((sum, { open_alerts }) => sum + Number(open_alerts), 0) : 0;
  const well: Well = { ...all, ok, faults, quiet_alerts };
  return {
    overview: { ...overview, well, pipelines, stages: overview.stages.filter(own) },
    alerts: alerts.filter(isOwn),
  };
}

/**
 * Whether all is well, what is not, and which bulks run.
 * @param mostLines How many lines the faults may take; the first fault is always there, and the others are counted.
 */
export function headLines({ overview }: Pick<Summary, 'overview'>, mostLines = Number.POSITIVE_INFINITY): string[] {
  const well = wellOf(overview);
  const { ok, faults, more, dead_last_day } = well;
  const { at, is } = sweepOf(overview, Date.parse(overview.now));
  const swept = at
    ? `the sweep ran ${age(Date.parse(overview.now) - Date.parse(at))} ago`
    : is === 'due'
      ? 'the first sweep is due within ten seconds'
      : 'the sweep never ran';
  const quiet = sayQuietAlerts(well);
  const stands = [swept, dead_last_day !== '0' && `${dead_last_day} died in the last day`, quiet]
    .filter(Boolean)
    .join('; ');
  const bulks = overview.bulks.map((bulk) =>
    line(
      `▶ bulk ${bulk.bulk}: ${bulk.do.verb} in ${words(bulk.filter.pipeline)}, ${count(bulk.done)} of ` +
        `${bulk.preview.runs} done, ${many(bulk.faults, 'fault')}, by ${words(bulk.by ?? 'SQL')}`,
    ),
  );
  const shown = fitting(
    faults.slice(0, mostFaults).map((fault) => wrap(`▲ ${words(told(fault))}`, terminalWidth())),
    mostLines,
  );
  const besides = faults.length - shown.length + more;
  const isEmpty = overview.pipelines.length === 0;
  const head = ok
    ? [pc.dim(line(`✓ ${isEmpty ? 'The engine' : 'All'} is well: ${stands}.`))]
    : [
        ...shown.flat().map((text) => pc.red(text)),
        ...(besides > 0 ? [pc.red(`▲ ${besides} more: npx millrace status --json`)] : []),
        pc.dim(line(`The engine: ${stands}.`)),
      ];
  if (isEmpty) {
    return [
      ...head,
      'There is no pipeline that you see: npx millrace add writes one, npx millrace sync its migration, which ' +
        'npx supabase db push brings here.',
    ];
  }
  return [...head, ...bulks];
}

/** Returns the first texts that together take at most so many lines, and the first one in any case. */
function fitting(texts: string[][], mostLines: number): string[][] {
  let lines = 0;
  return texts.filter((text, place) => {
    lines += text.length;
    return place === 0 || lines <= mostLines;
  });
}

/** Returns a line for each fault, with the number by which its alert is silenced. */
function told(fault: HealthFault): string {
  const { alert } = fault;
  const at = alert?.raised_at ? ` since ${moment(alert.raised_at)}` : '';
  return alert ? `alert ${alert.id}${at}: ${sayFault(fault)}` : sayFault(fault);
}
