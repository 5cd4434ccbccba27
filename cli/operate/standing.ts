// How things stand: the engine, open alerts and bulks, in the lines above every table of stages.
import pc from 'picocolors';
import { age, count, many } from '../../pages/base/numbers.ts';
import type { Overview } from '../../pages/operate/answers.ts';
import { sweepOf } from '../../pages/operate/needs.ts';
import type { Asked } from './asked.ts';
import { moment } from './moments.ts';
import { readAlerts, type ToldAlert } from './read-alerts.ts';
import { line, readLists } from './say.ts';
import { words } from './table.ts';

export interface Standing {
  overview: Overview;
  alerts: ToldAlert[];
}

export async function askStanding({ door }: Pick<Asked, 'door'>): Promise<Standing> {
  const [overview, { alerts }] = await Promise.all([
    readLists<Overview>(door, 'overview', { quiet: true }, 'pipelines', 'stages', 'bulks'),
    readAlerts(door, { open: true, limit: 20 }),
  ]);
  return { overview, alerts };
}

const sweepIn = (overview: Overview) => sweepOf(overview, Date.parse(overview.now));

export const isSilent = (overview: Overview) => sweepIn(overview).is === 'silent';

/** How the engine is, which alerts are open and which bulks run. */
export function headLines({ overview, alerts }: Standing): string[] {
  const { at, is } = sweepIn(overview);
  const swept = at ? `ran ${age(Date.parse(overview.now) - Date.parse(at))} ago` : 'never ran';
  const engine = {
    silent: pc.red(line(`▲ The engine's sweep ${swept}: look whether pg_cron runs (npx millrace doctor).`)),
    due: pc.dim(line('✓ The engine is new: its first sweep is due within ten seconds.')),
    well: pc.dim(line(`✓ The engine is well: its sweep ${swept}.`)),
  }[is];
  const bulks = overview.bulks.map((bulk) =>
    line(
      `▶ bulk ${bulk.bulk}: ${bulk.do.verb} in ${words(bulk.filter.pipeline)}, ${count(bulk.done)} of ` +
        `${bulk.preview.runs} done, ${many(bulk.faults, 'fault')}, by ${words(bulk.by ?? 'SQL')}`,
    ),
  );
  const shown = alerts
    .slice(0, 5)
    .map((alert) => pc.red(line(`▲ alert ${alert.id} since ${moment(alert.raised_at)}: ${words(alert.message)}`)));
  const more =
    alerts.length > 5
      ? [
          pc.red(
            `▲ ${many(alerts.length === 20 ? '15 or more' : alerts.length - 5, 'alert')} besides: npx millrace alerts`,
          ),
        ]
      : [];
  if (overview.pipelines.length === 0) {
    return [engine, 'There is no pipeline that you see: define one (npx millrace add), then npx millrace sync.'];
  }
  return [engine, ...shown, ...more, ...bulks];
}
