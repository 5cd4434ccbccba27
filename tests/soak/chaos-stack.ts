// One stack for all campaigns: with every example, services that can be taken away, a clock that is moved on, and a disk
// that can be full.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type Sites, startSites } from '../../local/demo/samples/sites/server.ts';
import { freePort } from '../../local/platform/free-port.ts';
import type { StackOptions } from '../../local/platform/stack.ts';
import type { Row } from '../support/engine.ts';
import { type Caller, ProjectStack } from '../support/project-stack.ts';
import { startTestSite, type TestSite } from '../support/test-site.ts';
import { ChaosServices } from './services.ts';

/** A signed-in user of an account and an organisation. */
export interface Tenant extends Caller {
  account: string;
  org: string;
}

// A stand-in for a full disk, since a test has no file system of its own to fill: these tables refuse writes with the
// SQLSTATE and the words that Postgres has for it, each with the probability that stands in chaos.disk.
const breakableDisk = `
  create schema chaos;
  create table chaos.disk (full_share float8 not null);
  insert into chaos.disk values (0);
  create function chaos.write_block() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
  begin
    if random() < (select d.full_share from chaos.disk d) then
      raise exception 'could not extend file "base/5/16385": No space left on device' using errcode = 'disk_full', hint = 'Check free disk space.';
    end if;
    return null;
  end $$;
  do $$
  declare
    v_table text;
  begin
    foreach v_table in array array['millrace.runs', 'millrace.attempts', 'millrace.claims', 'millrace.child_tallies', 'millrace.turns',
      'public.leads', 'public.document', 'public.chunk', 'public.chunk_draft', 'public.books', 'public.pages', 'public.millrace_decisions']
    loop
      execute format('create trigger chaos_disk before insert or update on %s for each statement execute function chaos.write_block()', v_table);
    end loop;
  end $$`;

// A function's life is one of the faults; without it processes serve many campaigns.
const limits: StackOptions['limits'] = { wallClockMs: 3_600_000, cpuSoftMs: 300_000, cpuHardMs: 600_000 };

export class ChaosStack extends ProjectStack {
  #services: ChaosServices | undefined;
  #samples: Sites | undefined;
  #site: TestSite | undefined;
  #admin: pg.Pool | undefined;

  static async start(): Promise<ChaosStack> {
    const [samples, site, port] = await Promise.all([startSites(), startTestSite(), freePort()]);
    const hosts = [samples.url, site.url, ...samples.hosts.map(({ url }) => url)].map((url) => new URL(url).host);
    const services = await ChaosServices.start(`http://127.0.0.1:${port}`, hosts.join(','));
    const chaos = new ChaosStack(await ProjectStack.launch({ env: services.env, port, limits }));
    chaos.#services = services;
    chaos.#samples = samples;
    chaos.#site = site;
    chaos.#admin = new pg.Pool({ connectionString: chaos.stack.superDbUrl, max: 2 });
    chaos.#admin.on('error', () => {});
    await chaos.takeClock();
    await chaos.asAdmin(breakableDisk);
    return chaos;
  }

  override async stop(): Promise<void> {
    await this.#admin?.end();
    await super.stop();
    await Promise.all([this.services, this.samples, this.site].map((part) => part.stop()));
  }

  get services(): ChaosServices {
    return this.#services as ChaosServices;
  }

  get samples(): Sites {
    return this.#samples as Sites;
  }

  /** A site of a few short pages. */
  get site(): TestSite {
    return this.#site as TestSite;
  }

  /** Rows of a statement, as the superuser, for whom some connections are kept free. */
  async asAdmin<T extends Row = Row>(statement: string, values?: unknown[]): Promise<T[]> {
    return (await (this.#admin as pg.Pool).query<T>(statement, values)).rows ?? [];
  }

  /** A user of a new account and a new organisation. */
  async tenant(): Promise<Tenant> {
    const [account, org] = [randomUUID(), `org_${randomUUID().slice(0, 8)}`];
    return { account, org, ...(await this.signedIn({ org_id: org, app_metadata: { account_id: account } })) };
  }
}
