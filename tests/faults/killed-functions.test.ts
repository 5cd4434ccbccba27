import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { gate } from '../support/faults/fault-proxy.ts';
import { functionsFolder } from '../support/stack/functions-folder.ts';
import { account, LeadsStack } from '../support/stack/stack.ts';

const fatalLead = '0f41a1ab-7c51-4f3c-8b54-8f2f8a2f9d01';
const cpuLead = '0f41a1ab-7c51-4f3c-8b54-8f2f8a2f9d02';
const memoryLead = '0f41a1ab-7c51-4f3c-8b54-8f2f8a2f9d03';
const withFatalRow = functionsFolder({
  replace: { 'leads-messaging': path.join(import.meta.dirname, 'functions', 'fatal-messaging.ts') },
});

let leads: LeadsStack;
beforeAll(async () => {
  leads = await LeadsStack.start({
    proxies: true,
    functionsDir: withFatalRow.path,
    env: { FATAL_LEAD: fatalLead, CPU_LEAD: cpuLead, MEMORY_LEAD: memoryLead, QUEUE_BATCH_SIZE: '50' },
  });
});
afterEach(async () => {
  // Calls that still waited for the test's word would hold up its second try.
  leads.proxies.toModel.decide = () => 'pass';
  await leads.expectSound();
});
afterAll(async () => {
  await leads.stop();
  withFatalRow.remove();
});

test('a batch whose function is killed is taken up by the next worker once its leases have expired', async () => {
  const { passed, open } = gate();
  leads.proxies.toModel.decide = () => passed.then(() => 'pass');
  const ids = await leads.queued(
    ...Array.from({ length: 5 }, (_, n) => leads.site.add([`Ferry number ${n} to the isles`])),
  );
  await leads.until('all are in work', async () => (await leads.count('intel', 'started')) === 5);
  await leads.stack.functions.kill('leads-intel');
  open();
  // Neither the lease nor the worker's heartbeat is worth anything by then.
  await leads.advance('2 minutes');
  await leads.sweep();
  await leads.finished(ids);
  await leads.expectCompleted(ids);
  for (const id of ids) {
    expect((await leads.attempts(id)).slice(0, 3)).toEqual([
      'scrape 1 completed',
      'intel 1 failed lost_lease',
      'intel 2 completed',
    ]);
  }
});

/** Brings so many good leads and these bad ones to the last stage, which is switched off: one worker will take them all. */
async function oneBatch(count: number, bad: string[]): Promise<string[]> {
  const url = leads.site.add(['Nets, ropes and cordage for harbours']);
  const good = await leads.insert(Array.from({ length: count }, () => url));
  // A second try of a test finds what the first has left.
  await leads.rows('delete from public.leads where id = any ($1::uuid[])', [bad]);
  await leads.rows(
    `insert into public.leads (id, email, company_url, account_id)
     select b, 'someone@example.com', $2, $3 from unnest($1::uuid[]) b`,
    [bad, url, account],
  );
  await leads.rows(`update millrace.stages set max_workers = 1, enabled = name <> 'messaging'`);
  const all = [...good, ...bad];
  await leads.queue(all);
  await leads.until(
    'all wait for the last stage',
    async () => (await leads.count('messaging', 'queued')) === all.length,
  );
  return good;
}

/** Whenever the function is dead, time passes until nobody counts on it any more. */
async function outliveTheDead(): Promise<void> {
  const held = await leads.count('messaging', 'started');
  if (held === 0 || leads.stack.functions.pids('leads-messaging').length > 0) return;
  await leads.advance('2 minutes');
  await leads.sweep();
}

async function switchOn(): Promise<void> {
  await leads.rows('update millrace.stages set enabled = true');
  await leads.sweep();
}

test('a row that kills its function fails alone, and the 49 beside it in the batch are completed', async () => {
  const good = await oneBatch(49, [fatalLead]);
  await switchOn();
  await leads.finished([...good, fatalLead], outliveTheDead);
  await leads.expectCompleted(good);
  for (const id of good) {
    expect(await leads.attempts(id, 'messaging')).toEqual(['messaging 1 failed lost_lease', 'messaging 2 completed']);
  }
  // Beside the others, then alone wherever there was room, then as the first of an isolate, which tells that it is to blame.
  expect(await leads.attempts(fatalLead, 'messaging')).toEqual([
    'messaging 1 failed lost_lease',
    'messaging 2 failed lost_lease',
    expect.stringMatching(/^messaging 3 failed (lost_lease|resource_limit)$/),
    'messaging 4 failed resource_limit',
  ]);
  expect(await leads.lead(fatalLead)).toMatchObject({
    messaging_status: 'failed',
    messaging_error: expect.stringMatching(/ran this row alone/),
    messaging_retry_count: 3,
  });
});

test.runIf(process.platform === 'linux')(
  'rows that take their function to a limit fail alone, and cost the nine beside them one call and no attempt',
  async () => {
    const good = await oneBatch(9, [cpuLead, memoryLead]);
    let executions = 0;
    let alone: Promise<void> | undefined;
    // Beside one of the bad rows a good one never gets to its end. One look serves all that wait.
    leads.proxies.toModel.decide = async () => {
      executions += 1;
      alone ??= leads
        .until('it is alone', async () => (await leads.count('messaging', 'started')) === 1)
        .finally(() => {
          alone = undefined;
        });
      await alone;
      return 'pass' as const;
    };
    await switchOn();
    await leads.finished([...good, cpuLead, memoryLead], outliveTheDead);
    await leads.expectCompleted(good);
    for (const id of good) expect(await leads.attempts(id, 'messaging')).toEqual(['messaging 1 completed']);
    expect(executions).toBe(2 * good.length);
    // An isolate whose memory is full gets requests all the same, and what it is given then ends it without a word; one whose CPU
    // time runs out may be gone before a busy machine has taken down what it says.
    for (const id of [cpuLead, memoryLead]) {
      const ends = await leads.attempts(id, 'messaging');
      expect(ends).toHaveLength(4);
      for (const end of ends) expect(end).toMatch(/failed (resource_limit|lost_lease)$/);
      expect(ends.at(-1)).toContain('resource_limit');
    }
    // On a busy machine the last isolate may end without a word; what is said then names CPU and memory.
    expect(await leads.lead(cpuLead)).toMatchObject({ messaging_error: expect.stringContaining('CPU') });
    expect(await leads.lead(memoryLead)).toMatchObject({ messaging_error: expect.stringContaining('memory') });
  },
);
