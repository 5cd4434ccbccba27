// The rules of batch prices that must hold when a campaign is over: of the questions, and of what their provider was paid for.
import { tokens } from '../../local/services/batches/batch-jobs.ts';
import { price } from './batch-provider.ts';
import type { Campaign } from './campaign.ts';

/** A question of a batch that outlived its time: its row has asked anew, and the batch may have answered all the same. */
const outlived = 'l.lapsed and l.dropped';

/** Statements that find nothing where all is well, by what they would have found. */
export const batchWrongs: Record<string, string> = {
  'a batch without its end': 'select b.id, b.status from public.model_batches b where b.ended_at is null',
  'a batch whose run did not complete': `select b.id, b.status from public.model_batches b where not exists (
    select from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
    where p.name = 'model_batches' and r.entity_id = b.id::text and r.status = 'completed')`,
  'a question that still waits':
    'select l.id, l.batch_id, l.effect from public.model_batch_lines l where l.handed_at is null',
  'a question with two answers': `select l.effect, array_agg(l.batch_id) as batches from public.model_batch_lines l
    where l.answer ->> 'body' is not null and not (${outlived})
    group by l.effect, l.request::jsonb -> 'input', l.request::jsonb -> 'messages' having count(*) > 1`,
};

/** How often a stage run was tried, by the attempt that its idempotency key names; null once it was pruned. */
const tries = `select nullif(count(*), 0)::int from millrace.attempts f
  join millrace.attempts a on a.run_id = f.run_id and a.stage_id = f.stage_id where f.id = $1`;

/** An answer is paid for in one batch, or directly, and then once a try at the most: a killed function has paid, and not learned of it. */
export async function findBoughtTwice(campaign: Campaign): Promise<void> {
  const { chaos, troubles } = campaign;
  const [sold, directly] = [
    { batches: 0, again: 0 },
    { answers: 0, again: 0 },
  ];
  const gone = await chaos.asAdmin<{ effect: string }>(
    `select distinct l.effect from public.model_batch_lines l where ${outlived}`,
  );
  const spared = new Set(gone.map(({ effect }) => effect));
  for (const [text, one] of chaos.parts.provider.bought()) {
    sold.batches += one.batches;
    directly.answers += one.directly;
    if (one.directly > 1) {
      directly.again += one.directly - 1;
      const tried = await chaos.value<number | null>(tries, [one.key.slice(37)]);
      if (tried !== null && one.directly > tried)
        troubles.push(`asked directly ${one.directly} times in ${tried} tries: ${text}`);
    }
    if (one.batches + Math.min(one.directly, 1) <= 1) continue;
    if (spared.has(one.key)) sold.again += 1;
    else troubles.push(`bought in ${one.batches} batches, and directly ${one.directly} times: ${text}`);
  }
  campaign.count('answers bought in batches', sold.batches);
  campaign.count('answers bought again after a batch outlived its time', sold.again);
  campaign.count('answers bought directly', directly.answers);
  campaign.count('answers bought directly again after a kill', directly.again);
  await compareCost(campaign, sold.batches);
  if (troubles.some((trouble) => trouble.startsWith('bought in'))) await tellBatches(campaign);
}

/** Tells when each batch was begun at the provider, and by which attempts. */
async function tellBatches({ chaos, troubles }: Campaign): Promise<void> {
  const begun = await chaos.asAdmin(
    `select b.id, b.key, b.round, b.status, b.job_id, b.sent, b.begun_at, b.ends_at, jsonb_agg(jsonb_build_array(a.id, a.state, a.started_at, a.finished_at,
       a.error ->> 'code') order by a.id) as attempts
     from public.model_batches b join millrace.runs r on r.entity_id = b.id::text join millrace.attempts a on a.run_id = r.id
     join millrace.stages s on s.id = a.stage_id where s.function_name = 'model-batches-begin' group by b.id order by b.id`,
  );
  const told = [...chaos.parts.provider.begun(), ...begun].map((one) => JSON.stringify(one));
  troubles.unshift(['batches at the provider, and of the project:', ...told].join('\n    '));
}

/** The questions cost what the provider was paid for its batches: half the direct price of each answer. */
async function compareCost({ chaos, troubles }: Campaign, answers: number): Promise<void> {
  const cost = `select coalesce(sum((usage ->> 'cost_usd')::numeric), 0)::float8 from public.model_batch_lines`;
  const [told, paid] = [await chaos.value<number>(cost), (answers * costOf(tokens)) / 2];
  if (Math.abs(told - paid) > 1e-6) troubles.push(`batches cost ${paid} dollars, and their questions ${told}`);
}

const costOf = ({ input, output }: typeof tokens) => (input * price.input + output * price.output) / 1_000_000;
