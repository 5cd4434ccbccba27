// Realtime as supabase-js speaks it, as far as broadcasts from the database go: channels, private ones by the policies on
// realtime.messages, tokens that expire. Clients' own broadcasts, presence and changes of tables are missing.
import type http from 'node:http';
import type { Duplex } from 'node:stream';
import type { JWTPayload } from 'jose';
import pg from 'pg';
import { keepSession } from '../database/session.ts';
import type { KeyCheck } from '../gateway/api-keys.ts';
import { mayRead } from './may-read.ts';
import { acceptWebSocket, type WebSocketConnection } from './web-socket.ts';

export interface Realtime {
  /** Takes a request for /realtime/v1/websocket. */
  upgrade(request: http.IncomingMessage, socket: Duplex, head: Buffer, keyCheck: KeyCheck): Promise<void>;
  stop(): Promise<void>;
}

/** A message of the protocol's version 2. */
type Message = [joinRef: string | null, ref: string | null, topic: string, event: string, payload: unknown];

interface Channel {
  joinRef: string | null;
  isPrivate: boolean;
  token: string;
  expiry: ReturnType<typeof setTimeout> | undefined;
}

interface Client {
  connection: WebSocketConnection;
  channels: Map<string, Channel>;
  /** The token that the API key stands for. */
  keyToken: string;
  claims(token: string): Promise<JWTPayload | undefined>;
}

interface Stored {
  id: string;
  topic: string;
  event: string;
  payload: Record<string, unknown>;
  private: boolean;
}

/** Longer than that no timer can wait. */
const mostMs = 2 ** 31 - 1;

/** Starts the server on the database at `url`, a superuser's. */
export function startRealtime(url: string, report: (message: string) => void): Realtime {
  const stopping = new AbortController();
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on('error', () => {});
  const clients = new Set<Client>();
  const done = keepSession(url, 'realtime', stopping.signal, report, async (client, over) => {
    client.on('notification', ({ payload }) => {
      deliver(client, clients, String(payload)).catch((error) => report(String(error)));
    });
    await client.query('listen realtime_messages');
    await new Promise<void>((resolve) => {
      if (over.aborted) resolve();
      over.addEventListener('abort', () => resolve(), { once: true });
    });
  });
  return {
    async upgrade(request, socket, head, keyCheck) {
      const query = new URL(String(request.url), 'http://stack').searchParams;
      const headers = await keyCheck.authorize(request.headers, query);
      if ('refusal' in headers) {
        socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n');
        return;
      }
      const bearer = String(headers.authorization);
      const client: Client = {
        channels: new Map(),
        keyToken: bearer.replace('Bearer ', ''),
        claims: (token) => keyCheck.claims({ authorization: `Bearer ${token}` }),
        connection: acceptWebSocket(request, socket, head, {
          onText: (text) => {
            take(pool, client, JSON.parse(text) as Message).catch((error) => report(String(error)));
          },
          onClose() {
            clients.delete(client);
            for (const topic of client.channels.keys()) leave(client, topic);
          },
        }),
      };
      clients.add(client);
    },
    async stop() {
      stopping.abort();
      for (const { connection } of clients) connection.close();
      await Promise.all([done, pool.end()]);
    },
  };
}

async function take(pool: pg.Pool, client: Client, [joinRef, ref, topic, event, payload]: Message): Promise<void> {
  const reply = (status: 'ok' | 'error', response: object) =>
    send(client, [joinRef, ref, topic, 'phx_reply', { status, response }]);
  const given = payload as { access_token?: string | null; config?: { private?: boolean } };
  if (event === 'heartbeat') return reply('ok', {});
  if (event === 'phx_leave') {
    leave(client, topic);
    reply('ok', {});
    return send(client, [joinRef, ref, topic, 'phx_close', {}]);
  }
  const joined = client.channels.get(topic);
  if (event === 'phx_join') {
    const token = given.access_token?.startsWith('sb_') ? client.keyToken : (given.access_token ?? client.keyToken);
    const channel = { joinRef, isPrivate: given.config?.private === true, token, expiry: undefined };
    const refusal = await refusalOf(pool, client, topic, channel);
    if (refusal) return reply('error', { reason: refusal });
    leave(client, topic);
    client.channels.set(topic, channel);
    return reply('ok', { postgres_changes: [] });
  }
  if (event === 'access_token' && joined && given.access_token && !given.access_token.startsWith('sb_')) {
    if (joined.token === given.access_token) return;
    joined.token = given.access_token;
    const refusal = await refusalOf(pool, client, topic, joined);
    if (refusal) shut(client, topic, refusal);
  }
}

/** Returns the reason why a channel may not be read with its token, and closes it later when the token expires. */
async function refusalOf(pool: pg.Pool, client: Client, topic: string, channel: Channel): Promise<string | undefined> {
  const claims = await client.claims(channel.token);
  if (!claims) return 'InvalidJWTToken: Token has expired or is invalid';
  const name = topic.replace(/^realtime:/, '');
  if (channel.isPrivate && !(await mayRead(pool, name, claims)))
    return `Unauthorized: You do not have permissions to read from this Channel topic: ${name}`;
  clearTimeout(channel.expiry);
  const leftMs = claims.exp === undefined ? mostMs : claims.exp * 1000 - Date.now();
  channel.expiry = setTimeout(
    () => shut(client, topic, 'Token has expired'),
    Math.min(Math.max(leftMs, 0), mostMs),
  ).unref();
  return undefined;
}

/** Closes a channel from the server's side. */
function shut(client: Client, topic: string, message: string): void {
  const channel = client.channels.get(topic);
  if (!channel) return;
  const payload = { extension: 'system', status: 'error', message, channel: topic.replace(/^realtime:/, '') };
  send(client, [channel.joinRef, null, topic, 'system', payload]);
  send(client, [channel.joinRef, null, topic, 'phx_close', {}]);
  leave(client, topic);
}

function leave(client: Client, topic: string): void {
  clearTimeout(client.channels.get(topic)?.expiry);
  client.channels.delete(topic);
}

/** Sends a message of the database to the channels of its topic and kind. */
async function deliver(database: pg.Client, clients: Set<Client>, id: string): Promise<void> {
  const { rows } = await database.query<Stored>(
    `select id, topic, event, payload, private from realtime.messages
     where id = $1 and extension = 'broadcast' and payload is not null`,
    [id],
  );
  for (const { topic: name, event, payload, private: isPrivate } of rows) {
    const topic = `realtime:${name}`;
    for (const client of clients) {
      if (client.channels.get(topic)?.isPrivate !== isPrivate) continue;
      send(client, [null, null, topic, 'broadcast', { type: 'broadcast', event, payload, meta: { id } }]);
    }
  }
}

const send = ({ connection }: Client, message: Message) => connection.send(JSON.stringify(message));
