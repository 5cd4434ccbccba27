/** A refusal by the project: its message, its remedy and the status of its answer. */
export class Refusal extends Error {
  readonly hint: string;
  /** The status of the answer; 0 where there was none. */
  readonly status: number;

  constructor(status: number, said: Record<string, unknown> = {}) {
    const message = said.message ?? said.msg ?? said.error_description;
    super(typeof message === 'string' ? message : `The project answered with ${status}.`);
    this.hint = typeof said.hint === 'string' ? said.hint : '';
    this.status = status;
  }

  /** Whether nothing was heard of the project, as against a refusal. */
  get isSilence(): boolean {
    return this.status === 0 || this.status >= 500;
  }
}
