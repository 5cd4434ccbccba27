// Calls the database's functions for operators through the Data API, as the page does, and nothing else.
import { visible } from '../../operators/visible.ts';
import { CommandError } from '../command-error.ts';
import { asCommands } from '../project/as-commands.ts';
import { jsonOfPublic, notServed } from '../project/call-database.ts';
import type { Target } from './find-target.ts';
import { learnClock } from './moments.ts';

const answerTimeMs = 20_000;

/** The body of an answer by which the database refuses a request. */
export interface Refused {
  code?: string;
  message?: string;
  hint?: string;
}

/** A refusal of the API (exit code 3), or a project that does not answer as one of Millrace (4). */
export class ApiError extends CommandError {
  readonly refused: Refused;

  constructor(exitCode: 3 | 4, refused: Refused) {
    const hint = asCommands(refused.hint ?? '');
    super([refused.message, hint].filter(Boolean).map(String).map(visible).join('\n'), exitCode);
    this.refused = refused;
  }
}

export interface Api {
  /** Reads what an operator may, such as `runs`. */
  read<Answer>(name: string, query?: Record<string, unknown>): Promise<Answer>;
  /** Does a verb. */
  act<Answer>(request: Record<string, unknown>): Promise<Answer>;
}

/** Returns the client of a project's API for operators. */
export function connectApi(target: Target): Api {
  return {
    read: (name, query = {}) => ask(target, `millrace_${name}`, { p_query: query }),
    act: (request) => ask(target, 'millrace_act', { p_request: { ...request, operator: target.operator } }),
  };
}

async function ask<Answer>({ url, headers }: Target, name: string, body: unknown): Promise<Answer> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${url}/rest/v1/rpc/${name}`, {
      method: 'POST',
      headers: { ...headers, ...jsonOfPublic },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(answerTimeMs),
    });
    learnClock(response.headers.get('date'));
    text = await response.text();
  } catch (error) {
    throw new ApiError(4, {
      message: `${url} ${silence(error as Silence)}`,
      hint: 'Look at its address and your connection.',
    });
  }
  const said = parsed(text);
  if (response.ok && said) return said as Answer;
  throw faultOf(url, name, response.status, said);
}

const noKey =
  'The key or token is nobody’s who may ask: set SUPABASE_SECRET_KEY to a secret key (sb_secret_…), or MILLRACE_USER_TOKEN to the ' +
  'token of a user whom millrace.operators lists.';

type Silence = Error & { cause?: { code?: string; message?: string } };

function silence(error: Silence): string {
  if (error.name === 'TimeoutError') return `did not answer within ${answerTimeMs / 1000} s.`;
  return `cannot be reached (${error.cause?.code ?? error.cause?.message ?? error.message}).`;
}

/** Returns the object that a text is as JSON; undefined for anything else. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const said = JSON.parse(text);
    return said !== null && typeof said === 'object' ? said : undefined;
  } catch {
    return undefined;
  }
}

function faultOf(url: string, name: string, status: number, said: Refused | undefined): ApiError {
  if (said?.code === 'PGRST202') {
    return new ApiError(4, {
      ...said,
      message: `${url} has no function ${name}.`,
      hint: 'Millrace is not installed there, or is of another release than this command: compare with npx millrace doctor.',
    });
  }
  if (status === 406) return new ApiError(4, { code: said?.code, message: notServed(url) });
  if (said?.message && status < 500) {
    // Removes the function's parameter from the message, which means nothing to a user of the command.
    const message = sentence(said.message.replace(/^(?:p_query|p_request|filter|do)\./, ''));
    return new ApiError(3, {
      code: said.code,
      message,
      hint: said.code === '42501' ? noKey : (said.hint ?? undefined),
    });
  }
  const told = said?.message
    ? `: ${said.message}`
    : status === 200
      ? ' with something that is no answer of Millrace.'
      : '.';
  return new ApiError(4, { code: said?.code, message: `${url} answered with ${status}${told}` });
}

/** The database's messages begin small and end without a point. */
const sentence = (message: string) =>
  `${message[0]?.toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? '' : '.'}`;
