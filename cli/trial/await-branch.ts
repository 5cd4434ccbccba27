// The wait for a new preview branch, which the platform starts for minutes after it was made.
import { CommandError } from '../command-error.ts';
import type { HostedProject } from './hosted-project.ts';

/** How long a new branch may take until it answers. */
const boundMs = 4 * 60_000;
const pauseMs = 10_000;

/** The output and the clock of the wait. */
export interface Waiting {
  say(line: string): void;
  now(): number;
  /** Resolves after so many milliseconds. Rejects where the trial has been ended. */
  pause(ms: number): Promise<unknown>;
}

/** Resolves once the branch's database and functions answer. Throws a CommandError with what was last said where neither does in time. */
export async function awaitBranch(
  branch: Pick<HostedProject, 'query' | 'functions'>,
  { say, now, pause }: Waiting,
): Promise<void> {
  const began = now();
  for (;;) {
    const why = await branch
      .query('select 1')
      .then(() => branch.functions())
      .then(
        () => null,
        (error: Error) => error.message,
      );
    if (why === null) return;
    const passed = now() - began;
    if (passed >= boundMs) {
      throw new CommandError(`The preview branch was not ready after ${boundMs / 60_000} minutes: ${why}`, 4);
    }
    say(`the preview branch is not ready after ${Math.round(passed / 1000)} s, waits`);
    await pause(pauseMs);
  }
}
