// `npm run soak -- chaos`: campaigns of random operations and faults on a whole stack. Each is drawn from its seed and prints
// it, with a count of what it did. CHAOS_CAMPAIGNS says how many (20), CHAOS_SEED which comes first; CHAOS_SEED alone plays
// that one. The seed draws the plan; who comes first is up to the machine (plan.ts).
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test, vi } from 'vitest';
import { Campaign } from './campaign.ts';
import { ChaosStack } from './chaos-stack.ts';
import { endCampaign } from './ending.ts';
import { strike, type Undo } from './faults.ts';
import { figuresOf } from './findings.ts';
import { playOperation } from './operations.ts';
import { drawPlan, type FaultKind, faults, type OperationKind, type Step } from './plan.ts';
import { report, reportTotal } from './report.ts';

const { CHAOS_SEED, CHAOS_CAMPAIGNS } = process.env;
const campaigns = Number(CHAOS_CAMPAIGNS ?? (CHAOS_SEED ? 1 : 20));
const first = CHAOS_SEED ? Number(CHAOS_SEED) : Date.now() % 1_000_000_000;

let stack: Promise<ChaosStack> | undefined;
const played: Campaign[] = [];
afterAll(async () => {
  reportTotal(played);
  await (await stack)?.stop();
});

// The waits of a campaign have bounds of its own; the stacks of other tests set shorter ones.
vi.setConfig({ testTimeout: 1_200_000, hookTimeout: 60_000 });

const isFault = (step: Step): step is Step<FaultKind> => step.kind in faults;

/** Plays all steps. A lasting fault ends in its time, and at the latest with the last step. */
async function play(campaign: Campaign): Promise<void> {
  const lasting: { ends: number; kind: string; undo: Undo }[] = [];
  const end = async (due: typeof lasting) => {
    for (const one of due) {
      lasting.splice(lasting.indexOf(one), 1);
      await one.undo();
    }
  };
  try {
    for (const step of campaign.plan.opening) await playOperation(campaign, step);
    for (const [place, step] of campaign.plan.steps.entries()) {
      await end(lasting.filter(({ ends }) => ends <= place));
      if (lasting.some(({ kind }) => kind === step.kind)) continue;
      const undo = isFault(step) ? await strike(campaign, step) : undefined;
      if (!isFault(step)) await playOperation(campaign, step as Step<OperationKind>);
      if (undo) lasting.push({ ends: place + step.lasts, kind: step.kind, undo });
      await pause(step.pauseMs);
    }
  } finally {
    await end([...lasting]);
    await Promise.all(campaign.beside);
  }
}

test.each(Array.from({ length: campaigns }, (_, n) => first + n))('seed %i', async (seed) => {
  stack ??= ChaosStack.start();
  const chaos = await stack;
  const began = Date.now();
  chaos.forget(seed);
  const campaign = new Campaign(chaos, drawPlan(seed), await chaos.tenant());
  campaign.before = await figuresOf(campaign);
  played.push(campaign);
  try {
    await play(campaign);
    await endCampaign(campaign);
  } catch (error) {
    campaign.troubles.push(String((error as Error).stack));
  }
  report(campaign, Date.now() - began);
  if (campaign.troubles.length > 0) {
    // Nobody knows what state it is in: the next campaign begins on another.
    stack = undefined;
    await chaos.stop();
  }
  expect(campaign.troubles).toEqual([]);
});
