// The actions that users do through the Data API, operators in SQL and by the operators' API, and time.
import { articlePlays } from './article-operations.ts';
import type { Campaign } from './campaign.ts';
import { linkPlays } from './link-operations.ts';
import { goOn, operatorPlays } from './operator-operations.ts';
import { parcelPlays } from './parcel-operations.ts';
import { Choices, type OperationKind, type Step } from './plan.ts';
import { remarkPlays } from './remark-operations.ts';
import { userPlays } from './user-operations.ts';

type Play = (campaign: Campaign, choices: Choices, step: Step) => Promise<void>;

const plays: Record<OperationKind, Play> = {
  ...userPlays,
  ...parcelPlays,
  ...remarkPlays,
  ...linkPlays,
  ...articlePlays,
  ...operatorPlays,
  'go on': ({ chaos }) => goOn(chaos),
  'time passes': async ({ chaos }, choices) => chaos.advance(`${choices.oneOf([2, 5, 15, 40, 90, 200])} seconds`),
  sweep: async ({ chaos }) => {
    await chaos.rows(`select millrace.sweep()`);
    await chaos.rows('select millrace.wake_job_poll()');
  },
};

/** Plays an operation and counts it. */
export async function playOperation(campaign: Campaign, step: Step<OperationKind>): Promise<void> {
  campaign.count(step.kind);
  await campaign.attempt(step.kind, () => plays[step.kind](campaign, new Choices(step), step));
}
