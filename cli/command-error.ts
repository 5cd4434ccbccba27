/** 1: something is wrong · 2: the command was misspelt · 3: the project refuses it · 4: the project cannot be reached. */
export type ExitCode = 1 | 2 | 3 | 4;

/** An error whose message the person at the terminal reads: a sentence with its remedy. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
