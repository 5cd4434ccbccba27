// The changes that users make with parcels: many at once, from sessions of any isolation, and with keys that change.
import { type Campaign, orThrow } from './campaign.ts';
import { changedParcels, parcels } from './functions/parcel-pipelines.ts';
import { redefine } from './parcels.ts';
import type { Choices } from './plan.ts';

export const parcelPlays = {
  'insert parcels': insertParcels,
  'queue parcels': queueParcels,
  'serializable sessions write parcels': writeSerializably,
  'change keys': changeKeys,
  'redefine parcels': async ({ chaos }: Campaign, choices: Choices) =>
    redefine((statement, values) => chaos.rows(statement, values), choices.below(2) === 0 ? changedParcels : parcels),
};

function drawParcels(choices: Choices, count: number, status: string) {
  const senders = 1 + choices.below(9);
  return Array.from({ length: count }, (_, n) => ({
    sender: `sender ${n % senders}`,
    // A few have contents, which are children.
    weight: n % 8 === 0 ? 9 : 2,
    weigh_status: status,
  }));
}

async function insertParcels({ chaos, promised }: Campaign, choices: Choices): Promise<void> {
  const drawn = drawParcels(choices, 20 + choices.below(30), 'queued');
  const written = orThrow(await chaos.project.rows.from('parcels').insert(drawn).select('id')) ?? [];
  for (const { id } of written) promised.add(`parcels ${id}`);
}

async function queueParcels(campaign: Campaign, choices: Choices): Promise<void> {
  const ids = await campaign.ids('parcels');
  const first = choices.below(Math.max(ids.length, 1));
  const stage = choices.oneOf(['weigh', 'weigh', 'carry', 'sign']) as string;
  await campaign.chaos.rows(
    `with held as (select id from public.parcels where id = any ($1) order by id for no key update)
     update public.parcels p set ${stage}_status = 'queued' from held h where p.id = h.id`,
    [ids.slice(first, first + 30)],
  );
}

/** How often a session whose transaction could not be put in line with the others begins it anew. */
const serialTries = 8;

/** Sessions that read and write parcels at once, each as if it were alone. */
async function writeSerializably(campaign: Campaign, choices: Choices): Promise<void> {
  const { chaos } = campaign;
  const rows = [0, 1, 2].map(() => drawParcels(choices, 8, 'queued'));
  const sessions = rows.map((drawn) =>
    chaos.session(async (session) => {
      await session.query(`set default_transaction_isolation = 'serializable'`);
      for (let tries = 1; ; tries += 1) {
        try {
          await session.query('begin');
          await session.query('select count(*) from public.parcels where weight > 5');
          const { rows: written } = await session.query(
            `insert into public.parcels (sender, weight, weigh_status)
             select r.sender, r.weight, r.weigh_status from jsonb_to_recordset($1) r(sender text, weight int, weigh_status text) returning id`,
            [JSON.stringify(drawn)],
          );
          await session.query(
            `update public.parcels set note = coalesce(note, '') || '.' where id = (select min(id) from public.parcels)`,
          );
          await session.query('commit');
          for (const { id } of written) campaign.promised.add(`parcels ${id}`);
          return;
        } catch (error) {
          if ((error as { code?: string }).code !== '40001' || tries === serialTries) throw error;
          campaign.count('serialization failures');
          await session.query('rollback');
        }
      }
    }),
  );
  for (const session of sessions) campaign.goBeside('serializable sessions write parcels', session);
}

/** Parcels that nothing hangs on get other keys and are queued; those with runs keep theirs. */
async function changeKeys(campaign: Campaign, choices: Choices): Promise<void> {
  const { chaos, promised, troubles } = campaign;
  const inserted = orThrow(
    await chaos.project.rows
      .from('parcels')
      .insert(drawParcels(choices, 6, 'pending'))
      .select('id'),
  );
  const ids = (inserted ?? []).map(({ id }) => id);
  const moved = await chaos.rows(
    `update public.parcels set id = id + 1000000, weigh_status = 'pending' where id = any ($1) returning id`,
    [ids.slice(0, 3)],
  );
  const all = [...moved.map(({ id }) => id), ...ids.slice(3)];
  for (const { id } of await chaos.rows(
    `update public.parcels set weigh_status = 'queued' where id = any ($1) returning id`,
    [all],
  )) {
    promised.add(`parcels ${id}`);
  }
  const known = choices.oneOf(await campaign.ids('parcels'));
  const changed = await campaign.attempt('change a key in use', () =>
    chaos.rows(
      `update public.parcels set id = -id where id = $1 and exists (select from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
         where p.name = 'parcels' and r.entity_id = $1::text) returning id`,
      [known],
    ),
  );
  for (const { id } of changed ?? []) troubles.push(`parcel ${id} has runs, and changed its key`);
}
