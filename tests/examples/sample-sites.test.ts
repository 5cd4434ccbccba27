import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  intelResult,
  messagingResult,
  scrapeResult,
  strategyResult,
  subjectResult,
} from '../../supabase/functions/_pipelines/leads-results.ts';
import { type StageName, stages } from '../support/examples/leads-report.ts';
import { functionsFolder } from '../support/stack/functions-folder.ts';
import { LeadsStack } from '../support/stack/stack.ts';

const schemas = {
  scrape: scrapeResult,
  intel: intelResult,
  strategy: strategyResult,
  subject: subjectResult,
  messaging: messagingResult,
};
const modelStages = stages.slice(1);
const prices = { LLM_PRICE_INPUT: '0.25', LLM_PRICE_OUTPUT: '2' };

let leads: LeadsStack;

/** Takes all sample sites through the pipeline and checks what there is at the end; returns the leads' ids. */
async function runSampleSites(): Promise<string[]> {
  const ids = await leads.queued(...leads.samples.hosts.map(({ url }) => url));
  await leads.finished(ids);
  await leads.expectCompleted(ids);
  for (const id of ids) {
    const lead = await leads.lead(id);
    for (const stage of stages) schemas[stage].parse(lead[`${stage}_result`]);
    expect(await leads.attempts(id)).toEqual(stages.map((stage) => `${stage} 1 completed`));
  }
  return ids;
}

/** The services whose jobs finished the stages of a lead, in order. */
async function services(id: string | undefined): Promise<(string | null)[]> {
  return (await leads.timeline(id)).map(({ service }) => service);
}

/** From now on no job is polled. */
async function stopPolls(): Promise<void> {
  await leads.rows('update millrace.stages set poll_every = null');
}

describe('a model that answers in the call', () => {
  beforeAll(async () => {
    leads = await LeadsStack.start({ env: prices });
    // Nothing but wake-ups and callbacks can move a lead on.
    await leads.rows(`select cron.unschedule('millrace-sweep')`);
    await stopPolls();
  });
  afterEach(() => leads.expectSound());
  afterAll(() => leads.stop());

  test('one update takes every sample site through all stages, by wake-ups and callbacks alone', async () => {
    const [id] = await runSampleSites();
    expect(await services(id)).toEqual(['scraper', null, null, null, null]);
  });

  test('each model attempt keeps its tokens, its cost and the version of its prompt', async () => {
    const ids = await leads.queued(leads.samples.hosts[0]?.url ?? '');
    await leads.finished(ids);
    const [scrape, ...asked] = await leads.timeline(ids[0]);
    expect(scrape?.usage).toBeNull();
    expect(asked.map(({ stage }) => stage)).toEqual(modelStages);
    for (const { stage, usage } of asked) {
      const { input_tokens, output_tokens, cost_usd } = usage as Record<string, number>;
      expect(usage).toMatchObject({ model: 'local', prompt: expect.stringMatching(`^${stage}-\\d+@[0-9a-f]{8}$`) });
      expect(input_tokens).toBeGreaterThan(0);
      expect(output_tokens).toBeGreaterThan(0);
      expect(cost_usd).toBeCloseTo(((input_tokens ?? 0) * 0.25 + (output_tokens ?? 0) * 2) / 1_000_000, 12);
    }
  });

  test('a stage queued again on a finished lead runs anew with all that follow it, on the earlier results', async () => {
    const [id = ''] = await leads.queued(leads.samples.hosts[1]?.url ?? '');
    await leads.finished([id]);
    const before = await leads.lead(id);
    await leads.queue([id], 'strategy');
    await leads.finished([id]);
    await leads.expectCompleted([id]);
    const after = await leads.lead(id);
    const again: StageName[] = ['strategy', 'subject', 'messaging'];
    for (const stage of stages) {
      const later = (after[`${stage}_completed_at`] as Date) > (before[`${stage}_completed_at`] as Date);
      expect(later, stage).toBe(again.includes(stage));
    }
    expect(await leads.rows('select status from millrace.runs where entity_id = $1 order by id', [id])).toEqual([
      { status: 'completed' },
      { status: 'completed' },
    ]);
  });
});

describe('a model that works in the background', () => {
  const env = { ...prices, LLM_MODE: 'background' };
  const withoutCallbacks = functionsFolder({
    replace: { millrace: path.join(import.meta.dirname, '..', 'support', 'examples', 'polls-alone.ts') },
  });
  afterEach(async () => {
    await leads.expectSound();
    await leads.stop();
  });
  afterAll(() => withoutCallbacks.remove());

  test('callbacks alone finish every stage of every sample site', async () => {
    leads = await LeadsStack.start({ env });
    await stopPolls();
    const [id] = await runSampleSites();
    expect(await services(id)).toEqual(['scraper', 'llm', 'llm', 'llm', 'llm']);
    expect((await leads.timeline(id)).slice(1).every(({ usage }) => Number(usage?.cost_usd) > 0)).toBe(true);
  });

  test('where no callback arrives, the poller finishes every stage of every sample site', async () => {
    leads = await LeadsStack.start({ env, functionsDir: withoutCallbacks.path });
    await leads.rows(`update millrace.stages set poll_every = '1 second'; select millrace.schedule_polls()`);
    const [id] = await runSampleSites();
    expect(await services(id)).toEqual(['scraper', 'llm', 'llm', 'llm', 'llm']);
    expect((await leads.timeline(id)).slice(1).every(({ usage }) => Number(usage?.cost_usd) > 0)).toBe(true);
  });
});
