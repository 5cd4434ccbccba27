// Copies of runs: what the page and the commands say of them.
import type { Run } from './answers.ts';

const copyIn = ({ outcome }: Run['journal'][number]) => outcome?.copy as number | undefined;

/** The stage whose edit made a copy, and what the copy does not do. */
export function saidOfCopy({ run, journal }: Run): string {
  const stage = journal.find((entry) => copyIn(entry) === run)?.stage;
  return `${stage ? `with ${stage} edited, ` : ''}writes no column`;
}

/** The runs that are copies of this one, the newest first. */
export const copiesOf = ({ run, journal }: Run): number[] =>
  journal.map(copyIn).filter((copy) => copy !== undefined && copy !== run) as number[];
