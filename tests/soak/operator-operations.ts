// The actions of operators: verbs over one run and over many, switches, throttles, bypasses, pruning.
import type { Row } from '../support/engine.ts';
import { type Campaign, type RootName, rootNames, roots } from './campaign.ts';
import type { ChaosStack } from './chaos-stack.ts';
import type { Choices, Step } from './plan.ts';

export const operatorPlays = {
  'start anew': startAnew,
  cancel: (campaign: Campaign, _: Choices, step: Step) =>
    verb(campaign, step, `r.status = 'running'`, 'select millrace.cancel($1)', 'cancelled'),
  reset: (campaign: Campaign, _: Choices, step: Step) => verb(campaign, step, 'true', 'select millrace.reset($1)'),
  skip: skipStage,
  'edit on a copy': editOnCopy,
  retry: (campaign: Campaign, _: Choices, step: Step) =>
    verb(campaign, step, `r.status <> 'running'`, 'select millrace.retry($1)'),
  'bulk begun': beginBulk,
  'bulk goes on': (campaign: Campaign, choices: Choices) => helpBulk(campaign, choices, 'continue'),
  'bulk aborted': (campaign: Campaign, choices: Choices) => helpBulk(campaign, choices, 'abort'),
  throttle,
  'end a throttle': ({ chaos }: Campaign) => endThrottles(chaos),
  bypass: async ({ chaos }: Campaign, choices: Choices) => {
    const [pipeline, stage] = choices.oneOf(bypassed) as [string, string];
    await chaos.rows(`select millrace.bypass($1, $2, 'it is down')`, [pipeline, stage]);
  },
  'end a bypass': async ({ chaos }: Campaign, choices: Choices) => {
    await chaos.rows('select millrace.end_bypass($1, $2)', choices.oneOf(bypassed));
  },
  'take up': async ({ chaos }: Campaign, choices: Choices) => {
    const [pipeline, stage] = choices.oneOf(bypassed) as [string, string];
    await chaos.rows('select millrace.take_up($1, $2, 200)', [pipeline, stage]);
  },
  'a day passes and is pruned': async ({ chaos }: Campaign) => {
    await chaos.advance('25 hours');
    await chaos.rows('select millrace.prune()');
  },
  'turn the cut-over': async ({ chaos }: Campaign, choices: Choices) => {
    const share = choices.oneOf([1, 0, 0.5, null]);
    await chaos.rows('update public.document_way set share = $1', [share]);
  },
  pause: async ({ chaos }: Campaign, choices: Choices) => {
    const pipeline = choices.oneOf(rootNames) as RootName;
    const stage = choices.oneOf([null, ...roots[pipeline].stages]);
    await chaos.rows('select millrace.pause($1, $2)', [pipeline, stage]);
  },
};

/** The stages that are left out for a while. */
const bypassed: [string, string][] = [
  ['parcels', 'carry'],
  ['links', 'extract'],
];

/** Lets everything go on that was paused. */
export async function goOn(chaos: ChaosStack): Promise<void> {
  const paused = await chaos.rows<{ pipeline: string; stage: string | null }>(
    'select pipeline, stage from millrace.paused',
  );
  for (const { pipeline, stage } of paused) await chaos.rows('select millrace.unpause($1, $2)', [pipeline, stage]);
}

/** Ends whatever an operator has under way, and takes up what was left out. */
export async function endAllActions(campaign: Campaign): Promise<void> {
  const { chaos } = campaign;
  await goOn(chaos);
  await endThrottles(chaos);
  for (const { id } of await chaos.rows(`select id from millrace.bulks where state in ('previewed', 'stopped')`)) {
    await act(campaign, { verb: 'abort', bulk: Number(id) });
  }
  for (let rounds = 0; rounds < 50; rounds += 1) {
    const running = await chaos.rows<{ id: string }>(`select id from millrace.bulks where state = 'running'`);
    if (running.length === 0) break;
    for (const { id } of running) await act(campaign, { verb: 'continue', bulk: Number(id) });
  }
  const left = await chaos.rows(
    `select p.name as pipeline, s.name as stage from millrace.bypasses b join millrace.stages s on s.id = b.stage_id
     join millrace.pipelines p on p.id = s.pipeline_id`,
  );
  for (const { pipeline, stage } of left) await chaos.rows('select millrace.end_bypass($1, $2)', [pipeline, stage]);
}

/** Takes up what is left of the rows that bypasses left out; resolves to how many there were. */
export async function takeAllUp({ chaos }: Campaign): Promise<number> {
  let all = 0;
  for (const [pipeline, stage] of bypassed) {
    for (;;) {
      const taken = await chaos.value<number>('select millrace.take_up($1, $2, 1000)::int', [pipeline, stage]);
      if (taken === 0) break;
      all += taken;
    }
  }
  return all;
}

/** Ends all throttles but those that a sweep has ended since they were listed. */
async function endThrottles(chaos: ChaosStack): Promise<void> {
  const unlessEnded = (error: { code?: string }) => {
    if (error.code !== 'MR004') throw error;
  };
  const stages = await chaos.rows(
    `select p.name as pipeline, s.name as stage from millrace.throttles t join millrace.stages s on s.id = t.stage_id
     join millrace.pipelines p on p.id = s.pipeline_id`,
  );
  for (const { pipeline, stage } of stages) {
    await chaos.rows('select millrace.unthrottle($1, $2)', [pipeline, stage]).catch(unlessEnded);
  }
  const limits = await chaos.rows('select name from millrace.shared_limit_state where throttled_for is not null');
  for (const { name } of limits) await chaos.rows('select millrace.unthrottle_limit($1)', [name]).catch(unlessEnded);
}

async function throttle({ chaos }: Campaign, choices: Choices): Promise<void> {
  const until = `millrace.now() + interval '10 minutes', 'too much at once'`;
  const count = 10 + choices.below(90);
  if (choices.below(3) === 0) {
    const name = choices.oneOf(['lorries', 'scrapes']);
    const limits = JSON.stringify({ rate: { count, per_seconds: 10 } });
    await chaos.rows(`select millrace.throttle_limit($1, $2, ${until})`, [name, limits]);
    return;
  }
  const [pipeline, stage] = choices.oneOf([
    ['parcels', 'weigh'],
    ['parcels', 'dispatch'],
    ['parcels', 'sign'],
    ['remarks', 'judge'],
    ['links', 'route_job'],
    ['leads', 'intel'],
    ['articles', 'fetch'],
  ]) as [string, string];
  const limits = JSON.stringify({ rate: { count, per_seconds: 10 } });
  await chaos.rows(`select millrace.throttle($1, $2, $3, ${until})`, [pipeline, stage, limits]);
}

/** The question that an operator asks by the API. */
async function act({ chaos }: Campaign, request: Row): Promise<Row> {
  return chaos.value<Row>('select public.millrace_act($1)', [JSON.stringify(request)]);
}

const bulkVerbs: Row[] = [
  { verb: 'retry' },
  { verb: 'retry' },
  { verb: 'hurry' },
  { verb: 'cancel' },
  { verb: 'reset', status: 'completed' },
];

async function beginBulk(campaign: Campaign, choices: Choices): Promise<void> {
  const { status, ...does } = choices.oneOf(bulkVerbs) as Row;
  const pipeline = choices.oneOf(['parcels', 'parcels', 'leads', 'links', 'labels', 'remarks']);
  const filter: Row = { pipeline, ...(status !== undefined && { status }) };
  if (does.verb === 'cancel' || does.verb === 'reset') {
    // Some of them, so that others go on.
    const runs = await campaign.chaos.rows<{ id: string; entity: string }>(
      `select r.id, r.entity_id as entity from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = $1 order by r.id`,
      [pipeline],
    );
    const first = choices.below(Math.max(runs.length, 1));
    const some = runs.slice(first, first + 25);
    if (some.length === 0) return;
    filter.runs = some.map(({ id }) => Number(id));
    if (does.verb === 'cancel') for (const { entity } of some) campaign.cancelled.add(entity);
  }
  const { bulk } = await act(campaign, { verb: 'preview', do: does, filter, reason: 'all at once' });
  await act(campaign, { verb: 'begin', bulk });
}

async function helpBulk(campaign: Campaign, choices: Choices, does: 'continue' | 'abort'): Promise<void> {
  const bulks = await campaign.chaos.rows(`select id from millrace.bulks where state = 'running' order by id`);
  const bulk = choices.oneOf(bulks);
  if (bulk) await act(campaign, { verb: does, bulk: Number(bulk.id) });
}

async function startAnew(campaign: Campaign, choices: Choices): Promise<void> {
  const found = await campaign.row(choices);
  if (!found) return;
  await campaign.chaos.rows('select millrace.start($1, $2, p_restart => true)', [found.pipeline, found.id]);
}

/** Gives a stage the result that it has once more, on a copy of the run. In other pipelines most copies are refused. */
async function editOnCopy(campaign: Campaign, choices: Choices): Promise<void> {
  const done = await campaign.chaos.rows<{ id: string; run: string; stage: string; output: unknown }>(
    `select a.id, a.run_id as run, s.name as stage, a.output from millrace.attempts a
     join millrace.stages s on s.id = a.stage_id join millrace.pipelines p on p.id = s.pipeline_id
     where p.name in ('leads', 'remarks') and a.state = 'completed' and not a.superseded order by a.id`,
  );
  const made = choices.oneOf(done);
  if (!made) return;
  const { id, run, stage, output: result } = made;
  await act(campaign, { verb: 'edit', run: Number(run), stage, attempt: Number(id), result, copy: true });
  campaign.count('copies made');
}

async function verb(campaign: Campaign, step: Step, where: string, statement: string, mark?: 'cancelled') {
  const run = await campaign.run(step, where);
  if (!run) return;
  if (mark) campaign.cancelled.add(run.entity);
  await campaign.chaos.rows(statement, [run.id]);
}

async function skipStage(campaign: Campaign, choices: Choices, step: Step): Promise<void> {
  const run = await campaign.run(step, `r.status = 'running'`);
  const stages = run && run.pipeline in roots ? roots[run.pipeline as RootName].stages : [];
  const stage = choices.oneOf(stages);
  if (!run || !stage) return;
  campaign.cancelled.add(run.entity);
  await campaign.chaos.rows('select millrace.skip($1, $2)', [run.id, stage]);
}
