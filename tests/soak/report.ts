// The steps that campaigns did, in words.
import { batchFaults } from './batch-provider.ts';
import type { Campaign } from './campaign.ts';
import { faults, operations } from './plan.ts';

type Counts = ReadonlyMap<string, number>;

const seconds = new Map<Campaign, number>();

/** Prints one campaign: its seed, its counts, and on a failure what broke and how to play it again. */
export function report(campaign: Campaign, tookMs: number): void {
  const { plan, counts, troubles } = campaign;
  seconds.set(campaign, tookMs / 1000);
  console.info(`seed ${plan.seed}: ${(tookMs / 1000).toFixed(1)} s, ${inWords(counts)}`);
  if (troubles.length === 0) return;
  const shown = troubles.slice(0, 20).map((trouble) => `  ${trouble}`);
  console.info([`seed ${plan.seed} FAILED:`, ...shown].join('\n'));
  console.info(`  what it did: ${[...plan.opening, ...plan.steps].map(({ kind }) => kind).join(', ')}`);
  console.info(`  play it again: CHAOS_SEED=${plan.seed} npm run soak -- chaos`);
}

/** Prints what all of them did together. */
export function reportTotal(campaigns: Campaign[]): void {
  const total = new Map<string, number>();
  for (const { counts } of campaigns) {
    for (const [what, number] of counts) total.set(what, (total.get(what) ?? 0) + number);
  }
  const took = campaigns.reduce((sum, campaign) => sum + (seconds.get(campaign) ?? 0), 0);
  const failed = campaigns.filter(({ troubles }) => troubles.length > 0);
  console.info(
    [
      `${campaigns.length} campaigns in ${took.toFixed(0)} s, ${failed.length} failed, ${inWords(total)}`,
      ...failed.map(({ plan }) => `  failed: CHAOS_SEED=${plan.seed} npm run soak -- chaos`),
    ].join('\n'),
  );
}

function inWords(counts: Counts): string {
  const sum = (kinds: string[]) => kinds.reduce((all, kind) => all + (counts.get(kind) ?? 0), 0);
  const [struck, done] = [[...Object.keys(faults), ...batchFaults], Object.keys(operations)];
  const rest = [...counts.keys()].filter((kind) => !struck.includes(kind) && !done.includes(kind));
  return [
    `${sum(struck)} faults (${list(counts, struck)})`,
    `${sum(done)} operations (${list(counts, done)})`,
    list(counts, rest),
  ].join('; ');
}

function list(counts: Counts, kinds: string[]): string {
  const known = kinds.filter((kind) => counts.has(kind));
  return known.map((kind) => `${counts.get(kind)} ${kind}`).join(', ');
}
