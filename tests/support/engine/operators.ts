// Operators in tests: sessions with a token of their own, and the functions that they call.
import type pg from 'pg';
import type { Engine, Refusal, Row } from '../engine.ts';

export interface Rights {
  role?: 'viewer' | 'operator';
  pipelines?: string[] | null;
  payloads?: boolean;
}

/** A person with a session of the Data API. */
export class Operator {
  readonly engine: Engine;
  readonly client: pg.Client;

  constructor(engine: Engine, client: pg.Client) {
    this.engine = engine;
    this.client = client;
  }

  /** The answer of public.millrace_<name>. */
  async ask<T = Row>(name: string, query: unknown = {}): Promise<T> {
    const { rows } = await this.client.query(`select public.millrace_${name}($1) as answer`, [JSON.stringify(query)]);
    return rows[0].answer;
  }

  /** The answer of millrace_act. */
  act<T = Row>(verb: string, request: Row = {}): Promise<T> {
    return this.ask('act', { verb, ...request });
  }

  /** Why a question is refused. */
  refusal(name: string, query: unknown = {}): Promise<Refusal> {
    return this.engine.refusal(`select public.millrace_${name}($1)`, [JSON.stringify(query)], this.client);
  }

  /** Why a verb is refused. */
  refused(verb: string, request: Row = {}): Promise<Refusal> {
    return this.refusal('act', { verb, ...request });
  }
}

/** A signed-in user, who is an operator if rights are given. */
export async function signIn(engine: Engine, subject: string, rights?: Rights, claims: Row = {}): Promise<Operator> {
  if (rights) {
    const { role = 'operator', pipelines = null, payloads = false } = rights;
    await engine.sql.query(
      `insert into millrace.operators (subject, role, pipelines, payloads) values ($1, $2, $3, $4)`,
      [subject, role, pipelines, payloads],
    );
  }
  return new Operator(engine, await engine.database.connect('authenticated', { sub: subject, ...claims }));
}

/** A program with a secret key. */
export const withSecretKey = async (engine: Engine) =>
  new Operator(engine, await engine.database.connect('service_role'));

/** The lines of the journal from the oldest on, but for those of who became an operator. */
export const journal = (engine: Engine): Promise<Row[]> =>
  engine.rows(`select * from millrace.journal where verb not in ('grant', 'revoke') order by id`);
