// A whole stack as applications use it: callers with keys and tokens of their own, rows as postgres, and a clock that a
// test moves on.
import { randomUUID } from 'node:crypto';
import { PostgrestClient } from '@supabase/postgrest-js';
import { StorageClient } from '@supabase/storage-js';
import pg from 'pg';
import { expect } from 'vitest';
import { type Stack, type StackOptions, startStack } from '../../../local/platform/stack.ts';
import { startServices } from '../../../local/services/start-services.ts';
import { allFaults } from '../bookkeeping.ts';
import type { Row } from '../engine.ts';
import { until } from '../until.ts';

/** A signed-in user, or the project itself, as an application speaks to Supabase. */
export interface Caller {
  rows: PostgrestClient;
  storage: StorageClient;
}

export class ProjectStack {
  readonly stack: Stack;
  /** With all rights. */
  readonly project: Caller;
  readonly #pool: pg.Pool;

  protected constructor(stack: Stack) {
    this.stack = stack;
    this.project = caller(stack, stack.secretKey, stack.secretKey);
    this.#pool = new pg.Pool({ connectionString: stack.dbUrl, max: 3 });
    this.#pool.on('error', () => {});
  }

  protected static launch(options: StackOptions): Promise<Stack> {
    return startStack({ fsync: false, services: startServices, ...options });
  }

  async stop(): Promise<void> {
    await this.#pool.end();
    await this.stack.stop();
  }

  /** A user whose token has these claims. */
  async signedIn(claims: Row): Promise<Caller> {
    const token = await this.stack.signUserToken({ sub: randomUUID(), ...claims });
    return caller(this.stack, this.stack.publishableKey, token);
  }

  /** Makes a user who signs in with a password; resolves to their id. */
  async account(email: string, password: string, app_metadata: Row = {}): Promise<string> {
    const { apiUrl, secretKey } = this.stack;
    const response = await fetch(`${apiUrl}/auth/v1/admin/users`, {
      method: 'POST',
      headers: { apikey: secretKey, 'content-type': 'application/json' },
      body: JSON.stringify({ email, password, email_confirm: true, app_metadata }),
    });
    return ((await response.json()) as { id: string }).id;
  }

  /** Rows of a statement, as postgres. */
  async rows<T extends Row = Row>(statement: string, values?: unknown[]): Promise<T[]> {
    return (await this.#pool.query<T>(statement, values)).rows;
  }

  /** First column of a statement's first row. */
  async value<T = unknown>(statement: string, values?: unknown[]): Promise<T> {
    const [row] = await this.rows(statement, values);
    return Object.values(row ?? {})[0] as T;
  }

  /** From now on the engine's clock goes by advance() too. */
  async takeClock(): Promise<void> {
    await this.rows(`
      create table if not exists millrace.test_clock (ahead interval not null);
      insert into millrace.test_clock select '0' where not exists (select from millrace.test_clock);
      create or replace function millrace.now() returns timestamptz
      language sql volatile set search_path = '' as 'select clock_timestamp() + c.ahead from millrace.test_clock c'`);
  }

  /** Moves the engine's clock on, by an interval such as '2 minutes'. */
  async advance(interval: string): Promise<void> {
    await this.rows('update millrace.test_clock set ahead = ahead + $1::interval', [interval]);
  }

  async sweep(): Promise<void> {
    await this.rows('select millrace.sweep()');
  }

  /** Waits until it holds; fails with what it is called, what `told` has to tell, and the engine's log. */
  async until(
    what: string,
    holds: () => Promise<unknown>,
    patienceMs: number,
    told?: () => Promise<Row[]>,
  ): Promise<void> {
    await until(holds, patienceMs, 100).catch(async () => {
      const lines = [
        ...((await told?.()) ?? []),
        ...(await this.rows('select * from millrace.log order by id desc limit 10')),
      ];
      throw new Error(
        `Not within ${patienceMs} ms: ${what}\n\n${lines.map((line) => JSON.stringify(line)).join('\n')}`,
      );
    });
  }

  /** The lines that these functions logged last. */
  protected lastWords(...functions: string[]): Row[] {
    return functions.flatMap((name) =>
      this.stack.functions
        .logs(name)
        .slice(-5)
        .map((line) => ({ [name]: line })),
    );
  }

  /** Fails the test when the engine's own rules are broken. */
  async expectSound(): Promise<void> {
    expect(await this.rows(allFaults)).toEqual([]);
  }
}

function caller({ apiUrl }: Stack, apikey: string, token: string): Caller {
  const headers = { apikey, Authorization: `Bearer ${token}` };
  return {
    rows: new PostgrestClient(`${apiUrl}/rest/v1`, { headers }),
    storage: new StorageClient(`${apiUrl}/storage/v1`, headers),
  };
}
