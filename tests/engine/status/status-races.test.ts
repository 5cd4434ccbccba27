// A person writes the status of a row while something else happens to it: in either order, with either taken back, and while they
// hold the row for something else. Machines wait for nobody; of two people the second waits, and is judged by what stands then.
import type pg from 'pg';
import { expect } from 'vitest';
import { makeNotes, type StatusDefinition, valuesOf } from '../../support/engine/status.ts';
import { type Engine, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { type Claimed, completed, failed, Worker } from '../../support/worker.ts';

/** Writes a value; resolves to `taken`, `gone` where there is no such row, or why it is refused. */
async function write(client: pg.Client, id: string, value: number): Promise<string> {
  try {
    const { rowCount } = await client.query('update public.note set status_code = $2 where id = $1', [id, value]);
    return rowCount === 1 ? 'taken' : 'gone';
  } catch (error) {
    // An error is told before its locks are let go.
    await client.query('').catch(() => {});
    const { code, message } = error as { code: string; message: string };
    return `${code}${message.replace(/.* cannot go/, '')}`;
  }
}

const question = (engine: Engine, id: string) =>
  engine.value<string>('select attempt_id from public.millrace_decisions where entity_id = $1 and closed_at is null', [
    id,
  ]);

/** Decides on a question; resolves to the verdict, or the code of the refusal. */
const decide = (client: pg.Client, attempt: string, verdict: string): Promise<string> =>
  client.query('select public.millrace_decide($1, $2) as answer', [attempt, { verdict }]).then(
    ({ rows }) => rows[0].answer.verdict,
    ({ code }) => code,
  );

/** The event that happens beside the person's write. */
interface Rival {
  client: pg.Client;
  /** Does it, or says it once more; resolves to how it went. */
  act(): Promise<string>;
  /** Forgets that it was done, where its transaction was rolled back. */
  undo?(): void;
}

type MakeRival = (engine: Engine, id: string) => Promise<Rival>;

/** A worker that would rather fail than wait. */
async function summarizer(engine: Engine): Promise<Worker> {
  const worker = await Worker.of(engine, 'summarize', 'notes');
  await worker.client.query(`set statement_timeout = '2s'`);
  return worker;
}

const reporting =
  (report: (item: Claimed) => ReturnType<typeof completed>): MakeRival =>
  async (engine) => {
    const worker = await summarizer(engine);
    const item = await worker.takeOne();
    return {
      client: worker.client,
      act: async () => String(await worker.report(report(item))),
      undo() {
        worker.seq -= 1;
      },
    };
  };

/** Claims what there is; once it has something, it reports that. */
const claiming: MakeRival = async (engine) => {
  const worker = await summarizer(engine);
  let batch: Claimed[] = [];
  return {
    client: worker.client,
    async act() {
      if (batch.length > 0) return String(await worker.report(...batch.map((item) => completed(item))));
      batch = await worker.take();
      return `${batch.length} claimed`;
    },
    undo() {
      worker.seq = 0;
      batch = [];
    },
  };
};

const losingLease: MakeRival = async (engine) => {
  await (await summarizer(engine)).takeOne();
  await engine.advance('61 seconds');
  const client = await engine.database.connect();
  await client.query(`set statement_timeout = '2s'`);
  return {
    client,
    async act() {
      const { rows } = await client.query('select millrace.sweep() as swept');
      return `${rows[0].swept.leases} lost`;
    },
  };
};

const deciding: MakeRival = async (engine, id) => {
  const client = await engine.database.connect('service_role');
  const attempt = await question(engine, id);
  return { client, act: () => decide(client, attempt, 'reject') };
};

const writing =
  (value: number): MakeRival =>
  async (engine, id) => {
    const client = await engine.database.connect();
    return { client, act: () => write(client, id, value) };
  };

const deleting: MakeRival = async (engine, id) => {
  const client = await engine.database.connect();
  return {
    client,
    async act() {
      const { rowCount } = await client.query('delete from public.note where id = $1', [id]);
      return rowCount === 1 ? 'deleted' : 'gone';
    },
  };
};

const scenes = {
  'the other first': rivalFirst('commit'),
  'the other first, but taken back': rivalFirst('rollback'),
  'the person first': personFirst('commit'),
  'the person first, but taken back': personFirst('rollback'),
  'the person holds the row, and then writes': personFirst('commit', true),
};

/** The other acts; the person writes; the other ends, and says it once more. */
function rivalFirst(ending: 'commit' | 'rollback') {
  return async (engine: Engine, id: string, value: number, rival: Rival) => {
    await rival.client.query('begin');
    const first = await rival.act();
    const person = await engine.database.connect();
    const written = begin(write(person, id, value));
    await untilBlocked(engine, person);
    await rival.client.query(ending);
    if (ending === 'rollback') rival.undo?.();
    const said = [first, await written, await rival.act()];
    engine.database.giveBack(person);
    return said;
  };
}

/** The person writes, or holds the row; the other acts, and waits if it is a person too; the first ends. */
function personFirst(ending: 'commit' | 'rollback', held = false) {
  return async (engine: Engine, id: string, value: number, rival: Rival, waits: boolean) => {
    const person = await openTransaction(engine);
    if (held) await person.query(`update public.note set label = 'mine' where id = $1`, [id]);
    const before = held ? '' : await write(person, id, value);
    const acted = begin(rival.act());
    if (waits) await untilBlocked(engine, rival.client);
    const during = waits ? 'waits' : await acted;
    const heard = before || (await write(person, id, value));
    await person.query(ending);
    engine.database.giveBack(person);
    return held
      ? [during, heard, await (waits ? acted : rival.act())]
      : [heard, during, await (waits ? acted : rival.act())];
  };
}

interface Race {
  at: 'summarize' | 'review';
  rival: MakeRival;
  /** Whether the other is a person. */
  waits?: boolean;
  /** The value that the person writes. */
  value: number;
  /** By scene: what was said, in that order, and the values that the note had from where both met. */
  ends: string[];
}

const races: Record<string, Race> = {
  'a completion': {
    at: 'summarize',
    rival: reporting((item) => completed(item)),
    value: 110,
    ends: [
      'accepted, taken, duplicate: 211 212 220 110',
      'accepted, taken, stale: 211 110',
      'taken, busy, stale: 211 110',
      'taken, busy, accepted: 211 212 220',
      'busy, taken, stale: 211 110',
    ],
  },
  'a completion that ends the run': {
    at: 'summarize',
    rival: reporting((item) => completed(item, { off: true })),
    value: 110,
    ends: [
      'accepted, MR005 from 345 to 110, duplicate: 211 212 345',
      'accepted, taken, stale: 211 110',
      'taken, busy, stale: 211 110',
      'taken, busy, accepted: 211 212 345',
      'busy, taken, stale: 211 110',
    ],
  },
  'a failure': {
    at: 'summarize',
    rival: reporting((item) => failed(item, { permanent: true })),
    value: 120,
    ends: [
      'accepted, taken, duplicate: 211 500 120',
      'accepted, taken, stale: 211 120',
      'taken, busy, stale: 211 120',
      'taken, busy, accepted: 211 500',
      'busy, taken, stale: 211 120',
    ],
  },
  'a claim': {
    at: 'summarize',
    rival: claiming,
    value: 120,
    ends: [
      '1 claimed, taken, stale: 210 211 120',
      '1 claimed, taken, 0 claimed: 210 120',
      'taken, 0 claimed, 0 claimed: 210 120',
      'taken, 0 claimed, 1 claimed: 210 211',
      '1 claimed, taken, stale: 210 120',
    ],
  },
  'a lost lease': {
    at: 'summarize',
    rival: losingLease,
    value: 120,
    ends: [
      '1 lost, taken, 0 lost: 211 210 120',
      '1 lost, taken, 0 lost: 211 120',
      'taken, 0 lost, 0 lost: 211 120',
      'taken, 0 lost, 1 lost: 211 210',
      '0 lost, taken, 0 lost: 211 120',
    ],
  },
  'a decision': {
    at: 'review',
    rival: deciding,
    waits: true,
    value: 330,
    ends: [
      'accepted, MR005 from 340 to 330, duplicate: 310 340',
      'accepted, taken, MR004: 310 330',
      'taken, waits, MR004: 310 330',
      'taken, waits, accepted: 310 340',
      'waits, taken, MR004: 310 330',
    ],
  },
  'a decision on what is to be done anew': {
    at: 'review',
    rival: deciding,
    waits: true,
    value: 220,
    ends: [
      'accepted, taken, duplicate: 310 340 220',
      'accepted, taken, MR004: 310 220',
      'taken, waits, MR004: 310 220',
      'taken, waits, accepted: 310 340',
      'waits, taken, MR004: 310 220',
    ],
  },
  'a decision on what is opened to be edited': {
    at: 'review',
    rival: deciding,
    waits: true,
    value: 320,
    ends: [
      'accepted, MR005 from 340 to 320, duplicate: 310 340',
      'accepted, taken, accepted: 310 320 340',
      'taken, waits, accepted: 310 320 340',
      'taken, waits, accepted: 310 340',
      'waits, taken, accepted: 310 320 340',
    ],
  },
  'another curator': {
    at: 'review',
    rival: writing(340),
    waits: true,
    value: 330,
    ends: [
      'taken, MR005 from 340 to 330, taken: 310 340',
      'taken, taken, MR005 from 330 to 340: 310 330',
      'taken, waits, MR005 from 330 to 340: 310 330',
      'taken, waits, taken: 310 340',
      'waits, taken, MR005 from 330 to 340: 310 330',
    ],
  },
  'another curator who approves too': {
    at: 'review',
    rival: writing(330),
    waits: true,
    value: 330,
    ends: [
      'taken, taken, taken: 310 330',
      'taken, taken, taken: 310 330',
      'taken, waits, taken: 310 330',
      'taken, waits, taken: 310 330',
      'waits, taken, taken: 310 330',
    ],
  },
  'another curator who deletes it': {
    at: 'review',
    rival: deleting,
    waits: true,
    value: 330,
    ends: [
      'deleted, gone, gone: ',
      'deleted, taken, deleted: ',
      'taken, waits, deleted: ',
      'taken, waits, deleted: ',
      'waits, taken, deleted: ',
    ],
  },
};

/** Notes that bring along what comes before both places, and of which a summary may end the run. */
function forRaces(definition: StatusDefinition): void {
  const { status } = definition.entity;
  Object.assign(status, { ends: { off_topic: 345 }, moves: [[345, 120]], closed: [320, 330, 345, 400] });
  Object.assign((status.values as { terminal: object }).terminal, { 345: ['off_topic', 'Not ours'] });
  Object.assign(definition.stages.find(({ name }) => name === 'summarize') ?? {}, {
    max_workers: 20,
    ends: [{ name: 'off_topic', when: '$.result.off == true' }],
  });
  for (const [place, stage] of definition.stages.slice(0, 4).entries()) {
    stage.given = place < 2 ? '$.entity.label == "found"' : '$.entity.title != null';
  }
}

/** A new note that is queued at `summarize`, or whose review somebody has opened. */
async function noteAt(engine: Engine, stage: Race['at']): Promise<string> {
  const brings = stage === 'review' ? ['found', 'done', 300] : ['found', null, 210];
  const insert = 'insert into public.note (label, title, status_code) values ($1, $2, $3) returning id';
  const id = await engine.value<string>(insert, brings);
  if (stage === 'review') await write(engine.sql, id, 310);
  return id;
}

for (const [name, { at, rival: makeRival, waits = false, value, ends }] of Object.entries(races)) {
  test(`${value} is written beside ${name}`, async ({ engine }) => {
    await makeNotes(engine, forRaces);
    for (const [place, [scene, play]] of Object.entries(scenes).entries()) {
      const id = await noteAt(engine, at);
      const rival = await makeRival(engine, id);
      const before = (await valuesOf(engine, id)).length - 1;
      const said = await play(engine, id, value, rival, waits);
      const values = (await valuesOf(engine, id)).slice(before);
      expect({ scene, end: `${said.join(', ')}: ${values.join(' ')}` }).toEqual({ scene, end: ends[place] });
      await engine.expectSound();
      await engine.sql.query('delete from public.note where id = $1', [id]);
      await rival.client.query('reset statement_timeout');
      engine.database.giveBack(rival.client);
    }
  });
}

test('a worker that goes on long hears at its next renewal that a curator has taken the note from it', async ({
  engine,
}) => {
  await makeNotes(engine, forRaces);
  const [id, other] = [await noteAt(engine, 'summarize'), await noteAt(engine, 'summarize')];
  const worker = await summarizer(engine);
  const batch = await worker.take();
  await write(engine.sql, id, 120);
  expect(await worker.renew(batch)).toMatchObject({
    lost: [batch.find(({ entity_id: entity }) => entity === id)?.attempt],
  });
  const { items } = await worker.complete(batch.map((item) => completed(item, { by: 'late' })));
  expect(items.map(({ verdict, reason }) => [verdict, reason])).toEqual([
    ['stale', 'the attempt was cancelled'],
    ['accepted', null],
  ]);
  expect(await valuesOf(engine, id)).toEqual([210, 211, 120]);
  expect(await valuesOf(engine, other)).toEqual([210, 211, 212, 220]);
});

test('a person who decides on a note that is deleted under review gets an error, and the question goes with it', async ({
  engine,
}) => {
  await makeNotes(engine, forRaces);
  const [id, other] = [await noteAt(engine, 'review'), await noteAt(engine, 'review')];
  const attempt = await question(engine, id);
  const [deleter, curator] = [await openTransaction(engine), await engine.database.connect('service_role')];
  await deleter.query('delete from public.note where id = $1', [id]);
  const decided = begin(decide(curator, attempt, 'approve'));
  await untilBlocked(engine, curator);
  await deleter.query('commit');
  expect(await decided).toBe('MR003');
  expect(await engine.rows('select entity_id from public.millrace_decisions')).toEqual([{ entity_id: other }]);
});
