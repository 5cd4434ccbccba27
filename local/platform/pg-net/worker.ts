// Sends what net.http_* queued, with the pace of the real pg_net: one transaction takes at most 200 requests, waits for
// all of them, stores the responses and commits; then a second's pause.
import { setMaxListeners } from 'node:events';
import type pg from 'pg';
import { keepSession, pause } from '../database/session.ts';
import { createSender, type QueuedRequest } from './send.ts';

const batchSize = 200;
const pauseMs = 1000;
const responsesKept = '6 hours';

export interface PgNet {
  stop(): Promise<void>;
}

/** Starts the worker on the database at `url` (a superuser). It finds its own way back after a crash of Postgres. */
export function startPgNet(url: string, report: (message: string) => void): PgNet {
  const stopping = new AbortController();
  // Every request of a batch listens for the end.
  setMaxListeners(0, stopping.signal);
  const sender = createSender(stopping.signal);
  const done = keepSession(url, 'pg_net 0.20.4', stopping.signal, report, async (client, over) => {
    await client.query(`set search_path = ''`);
    const wakeUp = listen(client, over);
    await client.query('listen pg_net_wake');
    while (!over.aborted) {
      wakeUp.reset();
      // An error sends the whole batch again after the pause, as the real worker's restart does.
      const sent = await sendBatch(client, sender.send, stopping.signal).catch(async (error: unknown) => {
        await client.query('rollback');
        report(String(error));
        return -1;
      });
      if (sent === 0) await wakeUp.wait();
      else await pause(pauseMs, over);
    }
  });
  return {
    async stop() {
      stopping.abort();
      await done;
      await sender.close();
    },
  };
}

async function sendBatch(
  client: pg.Client,
  send: (request: QueuedRequest) => Promise<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<number> {
  await client.query('begin');
  await client.query(
    `delete from net._http_response r
      using (select ctid from net._http_response
              where created < now() - $1::interval order by created limit $2) old
      where r.ctid = old.ctid`,
    [responsesKept, batchSize],
  );
  const { rows } = await client.query<QueuedRequest>(
    `with batch as (select id from net.http_request_queue order by id limit $1)
     delete from net.http_request_queue q using batch where q.id = batch.id
     returning q.id, q.method, q.url, q.body, q.timeout_milliseconds,
       (select jsonb_object_agg(h.key, h.value) from jsonb_each_text(q.headers) h) as headers`,
    [batchSize],
  );
  const responses = await Promise.all(rows.map(send));
  if (signal.aborted) {
    // Stopping: the requests that were taken go back to the queue.
    await client.query('rollback');
    return 0;
  }
  if (responses.length > 0) {
    await client.query(
      `insert into net._http_response (id, status_code, content, headers, content_type, timed_out, error_msg)
       select id, status_code, content, headers, content_type, timed_out, error_msg
         from jsonb_populate_recordset(null::net._http_response, $1::jsonb)`,
      [JSON.stringify(responses)],
    );
  }
  await client.query('commit');
  return rows.length;
}

/** Lets the worker sleep until a commit that queued something, and no longer than until the session is lost. */
function listen(client: pg.Client, signal: AbortSignal) {
  let woken = false;
  let release = () => {};
  const wakeUp = () => {
    woken = true;
    release();
  };
  client.on('notification', wakeUp);
  signal.addEventListener('abort', wakeUp);
  return {
    reset() {
      woken = false;
    },
    async wait() {
      if (!woken && !signal.aborted) {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
    },
  };
}
