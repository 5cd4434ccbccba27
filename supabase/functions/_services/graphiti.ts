import { z } from 'zod';
import {
  authToken,
  type Env,
  errorFromStatus,
  excerpt,
  httpUrl,
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  readSettings,
  type Traced,
  traceHeaders,
} from '../_millrace/mod.ts';

/** Where the Graphiti server is; without GRAPHITI_URL there is none. */
export const graphitiSettings = z.object({
  GRAPHITI_URL: httpUrl
    .optional()
    .describe('set the base URL of a Graphiti server, such as https://graphiti.example.com, or remove it'),
  GRAPHITI_AUTH_TOKEN: authToken.optional(),
});

/** A text for Graphiti's graph, as its server takes it. */
export interface Episode {
  /** Letters, digits, _ and -: whose graph it belongs to. */
  groupId: string;
  name: string;
  content: string;
  /** When what it says was so. */
  timestamp: string;
  sourceDescription: string;
}

/** The context of a request to the server. */
export interface GraphitiContext extends Traced {
  env: Env;
  signal: AbortSignal;
}

const longestReason = 500;

/**
 * Hands a text to the Graphiti server at GRAPHITI_URL, which reads it some time later; false when none is set up. Throws a
 * StageError.
 *
 * It gets no uuid. The server takes one for that of an episode it has, and what reads its queue ends for good at one it
 * does not have (graphiti-core 0.29, August 2026: NodeNotFoundError in the task of routers/ingest.py). So a text that is
 * posted twice becomes two episodes, of the same name; what they say is resolved to the same entities and facts.
 *
 * @example
 * ```ts
 * const isSet = await postEpisode(
 *   {
 *     groupId: 'orders',
 *     name: 'order 7',
 *     content: entity.body,
 *     timestamp: '2026-11-01T12:00:00Z',
 *     sourceDescription: 'an order',
 *   },
 *   context,
 * );
 * ```
 */
export async function postEpisode(episode: Episode, context: GraphitiContext): Promise<boolean> {
  const { env, signal } = context;
  const { GRAPHITI_URL: url, GRAPHITI_AUTH_TOKEN: token } = readSettings(graphitiSettings, env);
  if (!url) return false;
  const headers: Record<string, string> = { ...traceHeaders(context), 'content-type': 'application/json' };
  if (token) headers.authorization = `Bearer ${token}`;
  const message = {
    name: episode.name,
    content: episode.content,
    role_type: 'system',
    // May be null, but not left out.
    role: null,
    timestamp: episode.timestamp,
    source_description: episode.sourceDescription,
  };
  const body = JSON.stringify({ group_id: episode.groupId, messages: [message] });
  let answer: Response;
  try {
    answer = await fetch(`${url}/messages`, { method: 'POST', headers, body, signal });
  } catch (error) {
    if (signal.aborted) throw error;
    const said = `The Graphiti server at GRAPHITI_URL cannot be reached: ${messageOf(error)}`;
    throw new RetriableError('graphiti_unreachable', 'The knowledge graph cannot be reached.', undefined, said);
  }
  const reason = excerpt(await answer.text().catch(() => ''), longestReason);
  if (answer.ok) return true;
  if (answer.status === 401 || answer.status === 403) {
    throw new MisconfiguredError(`Graphiti refused GRAPHITI_AUTH_TOKEN (${answer.status}): correct it.`, reason);
  }
  if (answer.status === 404 || answer.status === 405) {
    throw new MisconfiguredError('GRAPHITI_URL has no POST /messages: set the base URL of a Graphiti server.');
  }
  if (answer.status === 422) {
    throw new PermanentError('request_rejected', 'Graphiti answered 422', undefined, reason);
  }
  throw errorFromStatus(answer.status, answer.headers, 'Graphiti', reason);
}
