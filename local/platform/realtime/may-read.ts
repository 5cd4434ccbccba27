// Whether a caller may read a private channel, found out as Realtime does: by a message that is rolled back.
import { randomUUID } from 'node:crypto';
import type { JWTPayload } from 'jose';
import type pg from 'pg';

/** Asks the policies on realtime.messages whether the holder of these claims may read the channel `topic`. */
export async function mayRead(pool: pg.Pool, topic: string, claims: JWTPayload): Promise<boolean> {
  const client = await pool.connect();
  const id = randomUUID();
  try {
    await client.query('begin');
    await client.query(`insert into realtime.messages (id, topic, extension) values ($1, $2, 'broadcast')`, [
      id,
      topic,
    ]);
    await client.query(
      `select set_config('role', $1, true), set_config('realtime.topic', $2, true),
        set_config('request.jwt.claims', $3, true), set_config('request.jwt.claim.sub', $4, true),
        set_config('request.jwt.claim.role', $1, true)`,
      [claims.role, topic, JSON.stringify(claims), claims.sub ?? ''],
    );
    const { rowCount } = await client.query('select from realtime.messages where id = $1', [id]);
    return rowCount === 1;
  } catch {
    // A policy that raises lets nobody in.
    return false;
  } finally {
    await client.query('rollback').catch(() => {});
    client.release();
  }
}
