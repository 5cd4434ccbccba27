// One stack for all campaigns: with every example and the parcels, services that can be taken away, a clock that is moved on,
// a Data API whose answers get lost, and a disk that can be full.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { type Sites, startSites } from '../../local/demo/samples/sites/server.ts';
import { freePort } from '../../local/platform/free-port.ts';
import type { StackOptions } from '../../local/platform/stack.ts';
import type { Row } from '../support/engine.ts';
import { startTestSite, type TestSite } from '../support/examples/test-site.ts';
import { functionsFolder } from '../support/stack/functions-folder.ts';
import { type Caller, ProjectStack } from '../support/stack/project-stack.ts';
import { BatchProvider } from './batch-provider.ts';
import { DataApi } from './data-api.ts';
import { OwnWorker } from './own-worker.ts';
import { defineParcels, parcelFunctions } from './parcels.ts';
import { defineRemarks, remarkFunctions } from './remarks.ts';
import { ChaosServices } from './services.ts';
import { SmallDisk } from './small-disk.ts';
import { Toll } from './toll.ts';

/** A signed-in user of an account and an organisation. */
export interface Tenant extends Caller {
  account: string;
  org: string;
}

// A function's life is one of the faults; without it processes serve many campaigns.
const limits: StackOptions['limits'] = { wallClockMs: 3_600_000, cpuSoftMs: 300_000, cpuHardMs: 600_000 };

/** How long the function that begins a batch may be at it. */
const handlerMs = 55_000;

interface Parts {
  services: ChaosServices;
  dataApi: DataApi;
  toll: Toll;
  provider: BatchProvider;
  worker: OwnWorker;
  samples: Sites;
  /** A site of short pages. */
  site: TestSite;
  /** Where Postgres lies; in a word why there is none. */
  disk: SmallDisk | string;
}

export class ChaosStack extends ProjectStack {
  #parts: Parts | undefined;
  #removeFolder = () => {};
  #admin: pg.Pool | undefined;
  /** Attempts that began a batch in a function that was killed. */
  readonly #killed = new Set<string>();
  /** How far the engine's clock was ahead when it was last read. */
  #aheadMs = 0;

  static async start(): Promise<ChaosStack> {
    let known: ChaosStack | undefined;
    const [samples, site, toll, provider, dataApi, port] = await Promise.all([
      startSites(),
      startTestSite(),
      Toll.start(),
      BatchProvider.start(async () => (known ? known.#now() : Date.now())),
      DataApi.start(),
      freePort(),
    ]);
    const urls = [samples.url, site.url, ...samples.hosts.map(({ url }) => url)];
    const hosts = [...urls.map((url) => new URL(url).host), `localhost:${new URL(site.url).port}`];
    const apiUrl = `http://127.0.0.1:${port}`;
    const services = await ChaosServices.start(apiUrl, [apiUrl, dataApi.url], hosts.join(','));
    const folder = functionsFolder({
      add: { ...parcelFunctions, ...remarkFunctions },
      projectUrlFrom: 'PROJECT_PROXY_URL',
    });
    const env = {
      ...services.env,
      ...provider.env,
      FEED_ALLOW_HOSTS: hosts.join(','),
      PROJECT_PROXY_URL: dataApi.url,
      TOLL_URL: toll.url,
    };
    const chaos = new ChaosStack(await ProjectStack.launch({ env, port, limits, functionsDir: folder.path }));
    chaos.#removeFolder = folder.remove;
    dataApi.target = chaos.stack.apiUrl;
    const disk = await chaos.#moveToSmallDisk();
    const { secretKey } = chaos.stack;
    const worker = new OwnWorker({
      SUPABASE_URL: dataApi.url,
      SUPABASE_SECRET_KEY: secretKey,
      TOLL_URL: toll.url,
    });
    chaos.#parts = { services, dataApi, toll, provider, worker, samples, site, disk };
    chaos.#admin = new pg.Pool({ connectionString: chaos.stack.superDbUrl, max: 2 });
    chaos.#admin.on('error', () => {});
    known = chaos;
    await chaos.takeClock();
    await defineParcels((statement, values) => chaos.rows(statement, values));
    await defineRemarks((statement, values) => chaos.rows(statement, values));
    await chaos.until('the Data API knows the parcels', () => chaos.#knowsParcels(), 20_000);
    await chaos.rows(`insert into public.topic (name, description) values ('Canals', 'Canals, locks, gates, boats')`);
    await chaos.rows(`insert into public.tag (name) values ('locks')`);
    return chaos;
  }

  override async stop(): Promise<void> {
    const { services, dataApi, toll, provider, worker, samples, site, disk } = this.parts;
    await worker.stop();
    await this.#admin?.end();
    await super.stop();
    if (disk instanceof SmallDisk) disk.unmount();
    this.#removeFolder();
    await Promise.all([services, dataApi, toll, provider, samples, site].map((part) => part.stop()));
  }

  get parts(): Parts {
    return this.#parts as Parts;
  }

  /** All is well again, and nothing is known of the campaign before. The provider of batches has faults drawn from the seed. */
  forget(seed: number): void {
    this.parts.provider.forget(seed);
    this.parts.services.forget();
    this.parts.toll.forget();
    this.parts.dataApi.mood = 'passed on';
  }

  /** Lays Postgres, and nothing else, on a small disk. */
  async #moveToSmallDisk(): Promise<SmallDisk | string> {
    const disk = SmallDisk.mount();
    if (!(disk instanceof SmallDisk)) return disk;
    const { postgres } = this.stack;
    await postgres.stop();
    const moved = path.join(disk.folder, 'postgres');
    execFileSync('cp', ['-a', postgres.dataDir, moved]);
    fs.rmSync(postgres.dataDir, { recursive: true });
    fs.symlinkSync(moved, postgres.dataDir);
    await postgres.start();
    // Its log must not take the room by itself.
    const admin = new pg.Client({ connectionString: this.stack.superDbUrl });
    await admin.connect();
    await admin.query(`alter system set max_wal_size = '96MB'`);
    await admin.query('select pg_reload_conf()');
    await admin.end();
    return disk;
  }

  /** Whether the Data API writes them: while it loads its schema cache, inserts fail without a word. */
  async #knowsParcels(): Promise<boolean> {
    const { rows } = this.project;
    const row = { sender: 'nobody', weight: 1, weigh_status: 'pending' };
    const { data, error } = await rows.from('parcels').insert(row).select('id, sign_status');
    if (data?.[0]) await rows.from('parcels').delete().eq('id', data[0].id);
    return error === null;
  }

  /** Gives the disk's room back, and gets Postgres up again where it died or is dying of it. */
  async makeRoom(): Promise<void> {
    const { disk } = this.parts;
    if (disk instanceof SmallDisk) disk.giveBack();
    for (let tries = 0; ; tries += 1) {
      try {
        await this.asAdmin('select 1');
        return;
      } catch (error) {
        if (tries > 300) throw error;
      }
      // It refuses while it is there, be it in recovery.
      await this.stack.postgres.start().catch(() => {});
      await pause(100);
    }
  }

  /**
   * Moves the clock on once no function is beginning a batch: a lost call is told from one under way by time alone, and a function's
   * own time does not move on. The wait has a bound, since nobody works on an attempt whose claim was lost.
   */
  override async advance(interval: string): Promise<void> {
    const patient = Date.now() + handlerMs;
    while (Date.now() < patient && (await this.#beginning()).some((id) => !this.#killed.has(id))) await pause(50);
    await super.advance(interval);
  }

  /** Kills a function, and knows from then on that nobody works on what it had started. */
  async killFunction(name: string): Promise<void> {
    await this.stack.functions.kill(name);
    for (const id of name === 'model-batches-begin' ? await this.#beginning() : []) this.#killed.add(id);
  }

  /** The attempts that begin a batch at this moment. */
  async #beginning(): Promise<string[]> {
    const started = await this.asAdmin<{ id: string }>(
      `select a.id from millrace.attempts a join millrace.stages s on s.id = a.stage_id
       where s.function_name = 'model-batches-begin' and a.state = 'started'`,
    );
    return started.map(({ id }) => id);
  }

  /** The engine's time; while the database is away, as far ahead as it was. */
  async #now(): Promise<number> {
    const ahead = 'select extract(epoch from ahead)::float8 * 1000 as ms from millrace.test_clock';
    const [read] = await this.asAdmin<{ ms: number }>(ahead).catch(() => []);
    this.#aheadMs = read?.ms ?? this.#aheadMs;
    return Date.now() + this.#aheadMs;
  }

  /** Rows of a statement, as the superuser, for whom some connections are kept free. */
  async asAdmin<T extends Row = Row>(statement: string, values?: unknown[]): Promise<T[]> {
    return (await (this.#admin as pg.Pool).query<T>(statement, values)).rows ?? [];
  }

  /** A session of its own, as postgres, which ends with `action`. */
  async session(action: (session: pg.Client) => Promise<unknown>): Promise<void> {
    const session = new pg.Client({ connectionString: this.stack.dbUrl });
    session.on('error', () => {});
    try {
      await session.connect();
      await action(session);
    } finally {
      await session.end().catch(() => {});
    }
  }

  /** A user of a new account and a new organisation. */
  async tenant(): Promise<Tenant> {
    const [account, org] = [randomUUID(), `org_${randomUUID().slice(0, 8)}`];
    return { account, org, ...(await this.signedIn({ org_id: org, app_metadata: { account_id: account } })) };
  }
}
