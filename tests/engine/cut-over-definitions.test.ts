import { expect } from 'vitest';
import { type CutOver, defineCutOver, runs, turn } from '../support/cut-over.ts';
import { chain, type Engine, type Row, test } from '../support/engine.ts';
import { runStage } from '../support/worker.ts';

const define = (engine: Engine, definition: unknown) =>
  engine.refusal('select millrace.define($1)', [JSON.stringify(definition)]);

/** Each breaks one rule about what may replace what, and names what is told of it. */
const faults: Record<string, [(engine: Engine, given: CutOver) => Promise<unknown> | unknown, RegExp]> = {
  'no object': [
    (_, { phases }) => ({ ...phases, replaces: 'monolith' }),
    /^replaces is "monolith", but must be an object of pipeline and group_by$/,
  ],
  'an unknown field': [
    (_, { phases }) => ({ ...phases, replaces: { pipeline: 'monolith', by: 'org' } }),
    /^replaces\.by is not known$/,
  ],
  'no pipeline': [
    (_, { phases }) => ({ ...phases, replaces: { pipeline: 'gone' } }),
    /^replaces\.pipeline is "gone", which is no other pipeline$/,
  ],
  itself: [
    (_, { phases }) => ({ ...phases, replaces: { pipeline: 'phases' } }),
    /^replaces\.pipeline is "phases", which is no other pipeline$/,
  ],
  'a pipeline over other rows': [
    async (engine, { phases }) => {
      await engine.pipeline(chain(['far']), { table: 'public.others' }, 'distant');
      return { ...phases, replaces: { pipeline: 'distant' } };
    },
    /^replaces\.pipeline is "distant", which is over (public\.)?others\.id$/,
  ],
  'a pipeline that is replaced already': [
    async (engine, { phases }) => ({
      ...(await engine.pipeline(chain(['third']), {}, 'later')),
      replaces: phases.replaces,
    }),
    /^pipeline later cannot replace monolith: one of them is part of another cut-over$/,
  ],
  'a pipeline that replaces another': [
    async (engine) => ({ ...(await engine.pipeline(chain(['third']), {}, 'later')), replaces: { pipeline: 'phases' } }),
    /^pipeline later cannot replace phases: one of them is part of another cut-over$/,
  ],
  'another, while it is replaced itself': [
    async (engine, { monolith }) => {
      await engine.pipeline(chain(['third']), {}, 'earlier');
      return { ...monolith, replaces: { pipeline: 'earlier' } };
    },
    /^pipeline monolith cannot replace earlier: one of them is part of another cut-over$/,
  ],
  'a child': [
    async (engine) => {
      await engine.pipeline(chain(['third']), {}, 'inner');
      await engine.pipeline([{ name: 'outside', kind: 'pipeline', child: { pipeline: 'inner' } }], {}, 'outer');
      return { ...(await engine.pipeline(chain(['fourth']), {}, 'later')), replaces: { pipeline: 'inner' } };
    },
    /^pipeline later cannot replace inner: a stage of another pipeline starts runs of inner$/,
  ],
  'groups without metadata': [
    (_, { phases: { entity, ...phases } }) => ({ ...phases, entity: { ...entity, metadata: undefined } }),
    /^replaces\.group_by is "org", but must be a key of the metadata, whose column entity\.metadata names$/,
  ],
  'groups that are no key': [
    (_, { phases }) => ({ ...phases, replaces: { pipeline: 'monolith', group_by: 7 } }),
    /^replaces\.group_by is 7, but must be a key of the metadata/,
  ],
};

test.for(Object.keys(faults))('a definition that replaces %s is refused', async (fault, { engine }) => {
  const given = await defineCutOver(engine);
  const [make, message] = faults[fault] as (typeof faults)[string];
  const refusal = await define(engine, await make(engine, given));
  expect(refusal).toMatchObject({ code: 'MR001', message: expect.stringMatching(message), hint: expect.any(String) });
});

test('no stage may start runs of a pipeline that replaces another or is replaced', async ({ engine }) => {
  await defineCutOver(engine);
  await engine.addColumns('inside');
  for (const child of ['phases', 'monolith']) {
    const refusal = await define(engine, {
      pipeline: 'parent',
      entity: { table: 'public.items', key: 'id', projection: 'columns' },
      stages: [{ name: 'inside', kind: 'pipeline', child: { pipeline: child } }],
    });
    expect(refusal).toMatchObject({
      code: 'MR001',
      message: expect.stringMatching(/neither replaces another nor is replaced/),
    });
  }
});

test('a pipeline that is replaced stays over its rows', async ({ engine }) => {
  const { monolith } = await defineCutOver(engine);
  await engine.sql.query('create table public.others (id bigint primary key, metadata jsonb)');
  await engine.addColumns('whole', 'public.others');
  const refusal = await define(engine, { ...monolith, entity: { ...monolith.entity, table: 'public.others' } });
  expect(refusal).toMatchObject({
    code: 'MR001',
    message: expect.stringMatching(/^pipeline monolith cannot move to .*: pipeline phases replaces it/),
  });
});

test('a cut-over cannot begin while rows are under way both ways', async ({ engine }) => {
  const { phases } = await defineCutOver(engine);
  const { replaces, ...apart } = phases;
  await engine.define(apart);
  await engine.queued('first', 2);
  await engine.sql.query(`update public.items set whole_status = 'queued'`);
  expect(await define(engine, phases)).toMatchObject({
    code: 'MR001',
    message: 'pipeline phases cannot replace monolith yet: 2 entities have live runs of both',
  });
  await runStage(engine, 'whole', 'monolith');
  await engine.define(phases);
  expect(replaces).toBeDefined();
});

test('the flag outlives a definition that is the same or another, and ends with the cut-over', async ({ engine }) => {
  const { phases } = await defineCutOver(engine);
  await turn(engine, 'share', { share: 0.25 });
  await engine.define({ ...phases, stages: chain(['first', 'second'], { batch_size: 3 }) });
  const flags = () =>
    engine.rows(
      `select c.mode, c.share::float8, c.groups from millrace.cut_overs c join millrace.pipelines p on p.id = c.pipeline_id where p.name = 'phases'`,
    );
  expect(await flags()).toEqual([{ mode: 'share', share: 0.25, groups: null }]);
  const { replaces, ...apart } = phases;
  await engine.define(apart);
  expect(await flags()).toEqual([]);
  const [id] = await engine.queued('first');
  expect(await runs(engine, id)).toEqual(['phases running']);
  await engine.define({ ...apart, replaces });
  expect(await flags()).toEqual([{ mode: 'default', share: null, groups: null }]);
});

test('what the groups are cannot be unsaid while the flag names groups', async ({ engine }) => {
  const { phases } = await defineCutOver(engine);
  await turn(engine, 'groups', { groups: ['a'] });
  const without = { ...phases, replaces: { pipeline: 'monolith' } };
  expect(await define(engine, without)).toMatchObject({
    code: 'MR001',
    message: 'replaces.group_by is missing, but the flag of pipeline phases names groups',
  });
  await turn(engine, 'off');
  await engine.define(without);
  const refusal = await engine.refusal(`select millrace.set_cut_over('phases', 'groups', p_groups => array['a'])`);
  expect(refusal).toMatchObject({
    code: 'MR002',
    message: 'p_mode is groups, but pipeline phases does not say what its groups are',
  });
});

const calls: [call: string, expected: Row][] = [
  [`'phases', 'of'`, { code: 'MR002', message: 'p_mode is of, but must be default, off, share, groups or on' }],
  [`'phases', null`, { code: 'MR002', message: expect.stringMatching(/^p_mode is null/) }],
  [`'phases', 'share'`, { code: 'MR002', message: expect.stringMatching(/^p_share is null in the mode share/) }],
  [
    `'phases', 'share', 1.1`,
    {
      code: 'MR002',
      message: expect.stringMatching(/^p_share is 1\.1 in the mode share, but must be a number from 0 to 1/),
    },
  ],
  [`'phases', 'share', 'nan'`, { code: 'MR002', message: expect.stringMatching(/^p_share is NaN/) }],
  [`'phases', 'on', 0.5`, { code: 'MR002', message: expect.stringMatching(/^p_share is 0\.5 in the mode on/) }],
  [`'phases', 'groups'`, { code: 'MR002', message: expect.stringMatching(/^p_groups is null in the mode groups/) }],
  [
    `'phases', 'groups', p_groups => '{}'`,
    { code: 'MR002', message: expect.stringMatching(/^p_groups is {} in the mode groups/) },
  ],
  [
    `'phases', 'groups', p_groups => array['a', null]`,
    { code: 'MR002', message: expect.stringMatching(/^p_groups is {a,NULL}/) },
  ],
  [
    `'phases', 'groups', p_groups => array[['a'], ['b']]`,
    { code: 'MR002', message: expect.stringMatching(/^p_groups is {{a},{b}}/) },
  ],
  [
    `'phases', 'off', p_groups => array['a']`,
    { code: 'MR002', message: expect.stringMatching(/^p_groups is {a} in the mode off/) },
  ],
  [
    `'monolith', 'on'`,
    {
      code: 'MR003',
      message: 'there is no pipeline monolith that replaces another',
      hint: expect.stringMatching(/^These do: .*phases\.$/),
    },
  ],
  [`null, 'on'`, { code: 'MR003', message: 'there is no pipeline null that replaces another' }],
];

test.for(calls)('set_cut_over(%s) is refused with the remedy', async ([call, expected], { engine }) => {
  await defineCutOver(engine);
  const before = await engine.rows('select * from millrace.cut_overs');
  expect(await engine.refusal(`select millrace.set_cut_over(${call})`)).toMatchObject(expected);
  expect(await engine.rows('select * from millrace.cut_overs')).toEqual(before);
});
