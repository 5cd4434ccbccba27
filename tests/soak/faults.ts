// The faults of the machinery, and how they end again.
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type Campaign, roots } from './campaign.ts';
import type { CallMood } from './data-api.ts';
import { Choices, type FaultKind, type Step } from './plan.ts';
import { type CallbackMood, serviceNames } from './services.ts';
import { SmallDisk } from './small-disk.ts';
import type { TollMood } from './toll.ts';

/** Ends a fault. It must succeed, or the next campaign would suffer. */
export type Undo = () => Promise<void>;
type Strike = (campaign: Campaign, choices: Choices) => Promise<Undo | undefined>;

const strikes: Record<FaultKind, Strike> = {
  'function killed': killFunction,
  'zombie past its lease': stopFunction,
  'worker killed': async ({ chaos }) => void (await chaos.parts.worker.end('SIGKILL')),
  'worker told to end': async ({ chaos }) => void (await chaos.parts.worker.end('SIGTERM')),
  'Postgres killed': killPostgres,
  'statement timeouts of 15 ms': shortenTimeouts,
  'PostgREST killed': async ({ chaos }) => void (await chaos.stack.postgrest.restart()),
  'full disk': fillDisk,
  'connections exhausted': exhaustConnections,
  'queue of pg_net emptied': emptyQueue,
  'dead service': killService,
  'answers of the Data API lost': (campaign) => handleCalls(campaign, 'answers lost'),
  'calls of the Data API twice': (campaign) => handleCalls(campaign, 'twice'),
  'toll dead': (campaign) => handleToll(campaign, 'dead'),
  'toll forgets to answer': (campaign) => handleToll(campaign, 'answers lost'),
  'table locked': lockTable,
  'callbacks twice': (campaign) => handleCallbacks(campaign, 'twice'),
  'callbacks late': (campaign) => handleCallbacks(campaign, 'late'),
  'callbacks lost': (campaign) => handleCallbacks(campaign, 'lost'),
  'callback forged': forgeCallback,
  'wakes duplicated': wakeTwice,
  'function killed at its provider': killAtProvider,
};

/** Lets a fault strike and counts it, if there is anything to strike at. Answers how it ends, unless it is over at once. */
export async function strike(campaign: Campaign, step: Step<FaultKind>): Promise<Undo | undefined> {
  const { disk } = campaign.chaos.parts;
  campaign.count(step.kind === 'full disk' && typeof disk === 'string' ? `no full disk (${disk})` : step.kind);
  return campaign.attempt(step.kind, () => strikes[step.kind](campaign, new Choices(step)));
}

/** The functions that hold work at this moment, or, where none does, all of them that run. */
async function functionsAtWork({ chaos }: Campaign): Promise<string[]> {
  const rows = await chaos.asAdmin<{ name: string; busy: boolean }>(
    `select s.function_name as name, bool_or(a.id is not null) as busy from millrace.stages s
     left join millrace.attempts a on a.stage_id = s.id and a.state = 'started'
     where s.function_name is not null group by 1 order by 1`,
  );
  const alive = rows.filter(({ name }) => chaos.stack.functions.pids(name).length > 0);
  const busy = alive.filter((row) => row.busy);
  return (busy.length > 0 ? busy : alive).map(({ name }) => name);
}

async function killFunction(campaign: Campaign, choices: Choices): Promise<undefined> {
  const name = choices.oneOf([...(await functionsAtWork(campaign)), 'millrace']);
  if (name) await campaign.chaos.killFunction(name);
}

/** A function is stopped, its leases expire, others take over what it held, and then it goes on as if nothing had been. */
async function stopFunction(campaign: Campaign, choices: Choices): Promise<Undo | undefined> {
  const { functions } = campaign.chaos.stack;
  // The clock moves on while a function is stopped for a moment: its call to begin a batch would seem lost, and not be.
  const names = (await functionsAtWork(campaign)).filter((name) => name !== 'model-batches-begin');
  const name = choices.oneOf(names);
  if (!name) return undefined;
  const pids = functions.pids(name);
  for (const pid of pids) signal(pid, 'SIGSTOP');
  // The platform would ask another isolate.
  functions.retire(name);
  await campaign.attempt('zombie past its lease', async () => {
    await campaign.chaos.advance('2 minutes');
    await campaign.chaos.sweep();
  });
  return async () => {
    for (const pid of pids) signal(pid, 'SIGCONT');
  };
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

async function killPostgres({ chaos }: Campaign): Promise<undefined> {
  await chaos.stack.postgres.kill9();
  await chaos.stack.postgres.start();
}

/** The Data API's roles get 15 ms a statement, too few for many a batch. */
async function shortenTimeouts({ chaos }: Campaign): Promise<Undo> {
  const set = (service: string, user: string) =>
    chaos.asAdmin(
      `alter role service_role ${service}; alter role authenticated ${user}; notify pgrst, 'reload config'`,
    );
  await set(`set statement_timeout = '15ms'`, `set statement_timeout = '15ms'`);
  return async () => {
    await chaos.makeRoom();
    await set('reset statement_timeout', `set statement_timeout = '8s'`);
  };
}

/** No room is left where Postgres lies, which may die of it. */
async function fillDisk({ chaos }: Campaign, choices: Choices): Promise<Undo | undefined> {
  const { disk } = chaos.parts;
  if (!(disk instanceof SmallDisk)) return undefined;
  disk.fill(choices.oneOf([0, 0, 400_000]) as number);
  return () => chaos.makeRoom();
}

async function handleCalls({ chaos }: Campaign, mood: CallMood): Promise<Undo> {
  chaos.parts.dataApi.mood = mood;
  return async () => {
    chaos.parts.dataApi.mood = 'passed on';
  };
}

async function handleToll({ chaos }: Campaign, mood: TollMood): Promise<Undo> {
  chaos.parts.toll.mood = mood;
  return async () => {
    chaos.parts.toll.mood = 'answers';
  };
}

const lockedTables = [
  ...Object.values(roots).map(({ table }) => `public.${table}`),
  ...['public.model_batches', 'public.model_batch_lines'],
  ...['runs', 'attempts', 'workers', 'limits', 'pulses', 'stages'].map((table) => `millrace.${table}`),
];

/** A person makes an index, or changes a table, and takes a moment. */
async function lockTable(campaign: Campaign, choices: Choices): Promise<undefined> {
  const table = choices.oneOf(lockedTables);
  const mode = choices.oneOf(['share', 'share row exclusive', 'access exclusive']);
  const locked = campaign.chaos.session(async (session) => {
    await session.query('begin');
    await session.query(`lock table ${table} in ${mode} mode`);
    await pause(choices.oneOf([100, 300, 700]));
    await session.query('commit');
  });
  campaign.goBeside('table locked', locked);
}

/** Idle sessions take up every connection there is, those of the Data API included. */
async function exhaustConnections({ chaos }: Campaign): Promise<Undo> {
  const idle: pg.Client[] = [];
  const connect = async () => {
    const client = new pg.Client({ connectionString: chaos.stack.dbUrl });
    client.on('error', () => {});
    await client.connect();
    idle.push(client);
  };
  const takeAll = async () => {
    for (;;) {
      const taken = await Promise.allSettled(Array.from({ length: 8 }, connect));
      if (taken.some(({ status }) => status === 'rejected')) return;
    }
  };
  await takeAll();
  // Who is first at the places that become free is up to the machine: so until the Data API has none.
  for (let round = 0; round < 8; round += 1) {
    const ended = await chaos.asAdmin(
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'authenticator'`,
    );
    await takeAll();
    if (ended.length === 0) break;
  }
  return async () => {
    await Promise.all(idle.map((client) => client.end().catch(() => {})));
  };
}

async function emptyQueue({ chaos }: Campaign): Promise<undefined> {
  await chaos.asAdmin(
    'delete from net.http_request_queue where id in (select id from net.http_request_queue for update skip locked)',
  );
}

async function killService({ chaos }: Campaign, choices: Choices): Promise<Undo> {
  const name = choices.oneOf(serviceNames);
  if (name) chaos.parts.services.dead.add(name);
  return async () => {
    if (name) chaos.parts.services.dead.delete(name);
  };
}

async function handleCallbacks({ chaos }: Campaign, mood: CallbackMood): Promise<Undo> {
  chaos.parts.services.mood = mood;
  return async () => {
    chaos.parts.services.mood = 'passed on';
    await chaos.parts.services.deliverLate();
  };
}

/** A callback as it came, but with another body, or with a signature that nobody made. It must get nowhere. */
async function forgeCallback(campaign: Campaign, choices: Choices): Promise<undefined> {
  const { services } = campaign.chaos.parts;
  const call = services.last ?? {
    method: 'POST',
    path: '/functions/v1/millrace/callback',
    headers: { 'content-type': 'application/json', 'webhook-id': 'msg_forged', 'webhook-timestamp': '1700000000' },
    body: JSON.stringify({ job_id: 'job-1', status: 'completed', result: {} }),
  };
  const headers = { ...call.headers, 'webhook-signature': 'v1,AAAA' };
  // A callback that bears no signature of its own bears one in its address.
  const path = call.path.replace(/signature=[^&]+/, 'signature=AAAA');
  const body = choices.below(2) === 0 ? call.body : call.body.replace(/:"/, ':"forged ');
  const { status, json } = await services.deliver({ ...call, headers, path, body });
  if (status < 400 || json.verdict) campaign.troubles.push(`a forged callback was answered ${status} ${json.verdict}`);
}

/** A function is killed once the provider of batches has done its next call of a kind. */
async function killAtProvider({ chaos }: Campaign, choices: Choices): Promise<undefined> {
  const action = choices.oneOf(['upload', 'begin', 'begin', 'results'] as const) ?? 'begin';
  const name = action === 'results' ? 'model-batches-distribute' : 'model-batches-begin';
  chaos.parts.provider.trap = { action, spring: () => chaos.killFunction(name) };
}

/** Wakes a function that has queued or started attempts three times more. */
async function wakeTwice({ chaos }: Campaign, choices: Choices): Promise<undefined> {
  const stages = await chaos.asAdmin<{ function: string; pipeline: string; stage: string }>(
    `select s.function_name as function, p.name as pipeline, s.name as stage from millrace.stages s
     join millrace.pipelines p on p.id = s.pipeline_id
     where exists (select from millrace.attempts a where a.stage_id = s.id and a.state in ('queued', 'started')) and s.function_name is not null and s.host is null
     order by s.id`,
  );
  const woken = choices.oneOf(stages);
  if (!woken) return;
  const body = { pipeline: woken.pipeline, stage: woken.stage };
  await chaos.rows('select millrace.post($1, $2) from generate_series(1, 3)', [woken.function, JSON.stringify(body)]);
}
