// The changes that users make with remarks, whose stages ask models at batch prices.
import { type Campaign, orThrow } from './campaign.ts';
import type { Choices } from './plan.ts';

export const remarkPlays = {
  'insert remarks': insertRemarks,
  'queue remarks': queueRemarks,
  'edit remarks': editRemarks,
};

async function insertRemarks({ chaos, promised }: Campaign, choices: Choices): Promise<void> {
  const drawn = Array.from({ length: 8 + choices.below(40) }, (_, n) => ({
    body: `It came ${n} days late.`,
    judge_status: 'queued',
  }));
  const written = orThrow(await chaos.project.rows.from('remarks').insert(drawn).select('id')) ?? [];
  for (const { id } of written) promised.add(`remarks ${id}`);
}

/** Starts stages of some remarks over, whether or not their questions are in a batch. */
async function queueRemarks(campaign: Campaign, choices: Choices): Promise<void> {
  const stage = choices.oneOf(['judge', 'judge', 'reply']) as string;
  await changeSome(campaign, choices, `${stage}_status = 'queued'`);
}

/** A question of an edited remark that is asked again is another question. */
async function editRemarks(campaign: Campaign, choices: Choices): Promise<void> {
  await changeSome(campaign, choices, `body = r.body || '!'`);
}

async function changeSome(campaign: Campaign, choices: Choices, change: string): Promise<void> {
  const ids = await campaign.ids('remarks');
  const first = choices.below(Math.max(ids.length, 1));
  await campaign.chaos.rows(
    `with held as (select id from public.remarks where id = any ($1) order by id for no key update)
     update public.remarks r set ${change} from held h where r.id = h.id`,
    [ids.slice(first, first + 20)],
  );
}
