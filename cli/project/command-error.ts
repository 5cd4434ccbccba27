/** What is wrong, in a sentence with its remedy, for the person at the terminal. `exitCode` 2 where the command was misspelt. */
export class CommandError extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
