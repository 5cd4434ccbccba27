// Waits for the answer to the wake-up that the database sends when it is connected.
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError } from '../command-error.ts';
import { callDatabase } from './call-database.ts';

interface WakeAnswer {
  answered: boolean;
  /** The HTTP status; null without an answer. */
  status: number | null;
  /** pg_net's error, where there is no answer. */
  error: string | null;
  remedy: string | null;
}

/** pg_net sends within a second or two and waits five for the answer. */
const WAIT_MS = 20_000;
const ASK_EVERY_MS = 500;

interface WakeUp {
  /** Null where the database could not even send it. */
  wake_up: number | null;
  /** Where it was sent. */
  project_url: string;
}

/**
 * Waits until the database's wake-up was answered well. Resolves to what to tell where the database cannot reach the address, else to
 * null. Throws a CommandError that says what else stands between them.
 */
export async function awaitWakeUp(
  url: string,
  headers: Record<string, string>,
  sent: WakeUp,
): Promise<CommandError | null> {
  const { wake_up, project_url } = sent;
  const connected = `The database knows its functions at ${project_url}, but`;
  if (wake_up === null) throw new CommandError(`${connected} could not send a wake-up: run \`npx millrace doctor\`.`);
  const until = Date.now() + WAIT_MS;
  for (;;) {
    const answer = await callDatabase<WakeAnswer>(url, headers, 'millrace_wake_answer', { p_request: wake_up });
    if (answer.answered) return unreached(connected, answer);
    if (Date.now() > until) break;
    await sleep(ASK_EVERY_MS);
  }
  throw new CommandError(
    `${connected} pg_net has sent it no wake-up in ${WAIT_MS / 1000} s: run \`select net.worker_restart()\`, then this again.`,
  );
}

function unreached(connected: string, { status, error, remedy }: WakeAnswer): CommandError | null {
  if (remedy === null) return null;
  if (status === null) {
    return new CommandError(
      `${connected} cannot reach that address (${error ?? 'no answer'}). It is the SUPABASE_URL of the functions, which the ` +
        'database must reach too.',
    );
  }
  throw new CommandError(`${connected} its wake-up was answered ${status}: ${remedy}.`);
}
