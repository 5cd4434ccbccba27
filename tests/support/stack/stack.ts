// A whole stack with the leads pipeline and sites to read: leads go in, and a test waits for what becomes of them.
// The engine's clock can be moved on, so that nobody waits for a lease, a backoff or a deadline to pass.
import pg from 'pg';
import { expect } from 'vitest';
import { type Sites, startSites } from '../../../local/demo/samples/sites/server.ts';
import { type Stack, startStack } from '../../../local/platform/stack.ts';
import type { ScrapeLimits } from '../../../local/services/scraper/crawl-site.ts';
import { startServices } from '../../../local/services/start-services.ts';
import { allFaults } from '../bookkeeping.ts';
import type { Row } from '../engine.ts';
import { type Attempt, describeAttempt, diagnose, type StageName, stages } from '../examples/leads-report.ts';
import { startTestSite, type TestSite } from '../examples/test-site.ts';
import { until } from '../until.ts';
import { type ProxiedServices, startProxiedServices } from './proxied-services.ts';

/** The account of all leads that a test does not give another. */
export const account = '5f0a1b5e-8a34-4c39-9a11-0d6d8f2f7f01';

const patienceMs = 120_000;

export interface LeadsStackOptions {
  /** As for startStack(). */
  env?: Record<string, string>;
  functionsDir?: string;
  /** Whether to start the local services that no proxy stands before (default true). */
  services?: boolean;
  dataDir?: string;
  /** Puts a proxy before the scraper, the model and the project. */
  proxies?: boolean;
  /** Limits of the scraper behind its proxy. */
  scraperLimits?: Partial<ScrapeLimits>;
}

/** The environment that lets a scraper read the given sites. */
export function allowSites(...urls: string[]): { SCRAPER_ALLOW_HOSTS: string } {
  return { SCRAPER_ALLOW_HOSTS: urls.map((url) => new URL(url).host).join(',') };
}

export class LeadsStack {
  readonly stack: Stack;
  /** The project's sample sites. */
  readonly samples: Sites;
  /** A site whose pages the test writes. */
  readonly site: TestSite;
  readonly #services: ProxiedServices | undefined;
  readonly #pool: pg.Pool;
  readonly #sessions: pg.Client[] = [];

  private constructor(stack: Stack, samples: Sites, site: TestSite, services: ProxiedServices | undefined) {
    this.stack = stack;
    this.samples = samples;
    this.site = site;
    this.#services = services;
    this.#pool = new pg.Pool({ connectionString: stack.dbUrl, max: 3 });
    this.#pool.on('error', () => {});
  }

  /** Starts sites and a stack that may read them. */
  static async start({ proxies = false, scraperLimits, ...options }: LeadsStackOptions = {}): Promise<LeadsStack> {
    const started: { stop(): Promise<void> }[] = [];
    const keep = <T extends { stop(): Promise<void> }>(part: T): T => {
      started.push(part);
      return part;
    };
    try {
      const samples = keep(await startSites());
      const site = keep(await startTestSite());
      const allowed = allowSites(samples.url, site.url, ...samples.hosts.map(({ url }) => url));
      const env = { ...allowed, ...options.env };
      const services = proxies ? keep(await startProxiedServices(env, scraperLimits)) : undefined;
      const local = { services: options.services === false ? (false as const) : startServices };
      const stack = keep(await startStack({ fsync: false, ...options, ...local, env: { ...services?.env, ...env } }));
      services?.connect(stack.apiUrl);
      const leads = new LeadsStack(stack, samples, site, services);
      await leads.#takeClock();
      return leads;
    } catch (error) {
      for (const part of started.reverse()) await part.stop();
      throw error;
    }
  }

  async #takeClock(): Promise<void> {
    await this.rows(`
      create table if not exists millrace.test_clock (ahead interval not null);
      insert into millrace.test_clock select '0' where not exists (select from millrace.test_clock);
      create or replace function millrace.now() returns timestamptz
      language sql volatile set search_path = '' as 'select clock_timestamp() + c.ahead from millrace.test_clock c'`);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.end().catch(() => {})));
    await this.#pool.end();
    await this.stack.stop();
    await Promise.all([this.#services, this.samples, this.site].map((part) => part?.stop()));
  }

  /** The proxies of a stack that was started with them. */
  get proxies(): ProxiedServices {
    if (!this.#services) throw new Error('this stack was started without proxies');
    return this.#services;
  }

  /** Rows of a statement, as postgres. */
  async rows<T extends Row = Row>(statement: string, values?: unknown[]): Promise<T[]> {
    return (await this.#pool.query<T>(statement, values)).rows;
  }

  /** First column of a statement's first row. */
  async value<T = unknown>(statement: string, values: unknown[] = []): Promise<T> {
    const [row] = await this.rows(statement, values);
    return Object.values(row ?? {})[0] as T;
  }

  /** A session of its own, as postgres. */
  async session(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.stack.dbUrl });
    client.on('error', () => {});
    await client.connect();
    this.#sessions.push(client);
    return client;
  }

  /** Inserts one lead for each URL; returns their ids in that order. */
  async insert(urls: string[], accountId = account): Promise<string[]> {
    const rows = await this.rows<{ id: string }>(
      `insert into public.leads (email, company_url, account_id)
       select 'someone@example.com', u.url, $2 from unnest($1::text[]) with ordinality u(url, place) order by u.place
       returning id`,
      [urls, accountId],
    );
    return rows.map(({ id }) => id);
  }

  /** Queues a stage of leads, as a user does. */
  async queue(ids: string[], stage: StageName = 'scrape'): Promise<void> {
    await this.rows(`update public.leads set ${stage}_status = 'queued' where id = any ($1)`, [ids]);
  }

  /** Inserts a lead for each URL and queues them. */
  async queued(...urls: string[]): Promise<string[]> {
    const ids = await this.insert(urls);
    await this.queue(ids);
    return ids;
  }

  async lead(id: string | undefined): Promise<Row> {
    const [row] = await this.rows('select * from public.leads where id = $1', [id]);
    if (!row) throw new Error(`there is no lead ${id}`);
    return row;
  }

  /** The statuses of a lead's stages, in the order of the stages. */
  async statuses(id: string | undefined): Promise<string[]> {
    const lead = await this.lead(id);
    return stages.map((stage) => lead[`${stage}_status`] as string);
  }

  /** The newest run of a lead. */
  async run(id: string | undefined): Promise<{ id: string; status: string }> {
    const [run] = await this.rows<{ id: string; status: string }>(
      'select id, status from millrace.runs where entity_id = $1 order by id desc limit 1',
      [id],
    );
    if (!run) throw new Error(`lead ${id} has no run`);
    return run;
  }

  /** The attempts of a lead's newest run, in order, of the stages that these tests know: others may have been added since. */
  async timeline(id: string | undefined): Promise<Attempt[]> {
    const attempts = await this.rows<Attempt>('select * from millrace.timeline($1)', [(await this.run(id)).id]);
    return attempts.filter(({ stage }) => stages.includes(stage));
  }

  /** Attempts from a stage on as `stage number state`, with the code of a failure. */
  async attempts(id: string | undefined, from: StageName = 'scrape'): Promise<string[]> {
    const attempts = await this.timeline(id);
    return attempts.filter(({ stage }) => stages.indexOf(stage) >= stages.indexOf(from)).map(describeAttempt);
  }

  /** Moves the engine's clock on, for all sessions. */
  async advance(interval: string): Promise<void> {
    await this.rows('update millrace.test_clock set ahead = ahead + $1::interval', [interval]);
  }

  async sweep(): Promise<void> {
    await this.rows('select millrace.sweep()');
  }

  /** Waits for a condition on the database; when it is not met, tells all there is to know about the leads. */
  async until<T>(what: string, probe: () => Promise<T>, timeoutMs = patienceMs): Promise<void> {
    try {
      await until(probe, timeoutMs, 50);
    } catch {
      throw new Error(`Not within ${timeoutMs} ms: ${what}\n\n${await diagnose(this)}`);
    }
  }

  /** How many attempts of a stage are in a state. */
  async count(stage: StageName, state: string): Promise<number> {
    return this.value<number>(
      `select count(*)::int from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where s.name = $1 and a.state = $2::millrace.attempt_state`,
      [stage, state],
    );
  }

  /**
   * Waits until no run of these leads is under way. Where all that is left are retries that fall due later, the clock
   * is moved on to them. `meanwhile` is called at every look.
   */
  async finished(ids: string[], meanwhile: () => Promise<unknown> = async () => {}): Promise<void> {
    await this.until('all leads are finished', async () => {
      await this.#skipBackoff();
      await meanwhile();
      return this.value<boolean>(
        `select not exists (select from millrace.runs r where r.entity_id = any ($1) and r.status = 'running')`,
        [ids],
      );
    });
  }

  async #skipBackoff(): Promise<void> {
    const moved = await this.rows(
      `with live as (select a.state, a.queue_at from millrace.attempts a where a.state in ('queued', 'started', 'waiting'))
       update millrace.test_clock set ahead = ahead + (select max(l.queue_at) - millrace.now() from live l)
       where exists (select from live l)
         and not exists (select from live l where l.state <> 'queued' or l.queue_at <= millrace.now())
       returning ahead`,
    );
    if (moved.length > 0) await this.sweep();
  }

  /** Fails the test unless leads have completed every stage, with each result recorded once and shown on the row. */
  async expectCompleted(ids: string[]): Promise<void> {
    const rows = await this.rows<{ id: string; current_stage: string }>(
      'select id, current_stage from public.lead_pipeline_status where id = any ($1)',
      [ids],
    );
    const lagging = rows.filter((row) => row.current_stage !== 'completed').map((row) => row.id);
    if (lagging.length > 0) throw new Error(`${lagging.length} leads are not completed\n\n${await diagnose(this)}`);
    expect(rows).toHaveLength(ids.length);
  }

  /** Fails the test when anything is stuck, recorded twice, or shown otherwise than it was recorded. */
  async expectSound(): Promise<void> {
    expect(await this.rows(allFaults)).toEqual([]);
    expect(await this.rows(`select entity_id from millrace.runs where status = 'running'`)).toEqual([]);
    for (const stage of stages) {
      expect(
        await this.rows(
          `select l.id, count(a.output) from public.leads l
           join lateral (select r.id from millrace.runs r where r.entity_id = l.id::text order by r.id desc limit 1) r on true
           join millrace.stages s on s.name = $1
           left join millrace.attempts a on a.run_id = r.id and a.stage_id = s.id and a.state = 'completed' and not a.superseded
           group by l.id, l.${stage}_status, l.${stage}_result
           having count(a.output) > 1
             or (l.${stage}_status = 'completed') <> (count(a.output) = 1)
             or l.${stage}_result is distinct from (array_agg(a.output))[1]`,
          [stage],
        ),
      ).toEqual([]);
    }
  }
}
