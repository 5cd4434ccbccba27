import type pg from 'pg';
import type { Rpc } from '../../supabase/functions/_millrace/engine/engine-client.ts';

const jsonArguments = new Set(['p_items', 'p_stages', 'p_turns', 'p_job', 'p_jobs', 'p_faults', 'p_deliveries']);

/** Calls the database's functions as the Data API does, in a session of service_role. */
export function databaseRpc(client: pg.Client): Rpc {
  return async (name, args) => {
    const names = Object.keys(args);
    const values = names.map((key) => (jsonArguments.has(key) ? JSON.stringify(args[key]) : args[key]));
    const list = names.map((key, index) => `${key} => $${index + 1}`).join(', ');
    try {
      const { rows } = await client.query(`select public.${name}(${list}) as answer`, values);
      return { data: rows[0].answer, error: null, status: 200 };
    } catch (error) {
      const { message, code, hint } = error as { message: string; code?: string; hint?: string };
      return { data: null, error: { message, code, hint }, status: 400 };
    }
  };
}
