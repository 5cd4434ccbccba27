// Prints the answers of commands: lines for people, JSON for programs. Neither can steer a terminal.

import type { Fault } from '../../operators/answers.ts';
import { saidOf } from '../../operators/remedies.ts';
import { hidden } from '../../operators/visible.ts';
import type { Api } from './ask-api.ts';
import { ApiError } from './ask-api.ts';
import type { Context } from './context.ts';
import { clip, terminalWidth } from './table.ts';

/** JSON in one line, in which a terminal finds nothing to obey and nothing hides. */
export function inertJson(value: unknown): string {
  return JSON.stringify(value).replace(hidden, (character) =>
    // Escapes each half of a surrogate pair, as JSON has it.
    character.replace(/[\s\S]/g, (half) => `\\u${half.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

/** Prints an answer: as it is for programs, or the lines that `told` makes of it. */
export function say<Answer>({ json }: Pick<Context, 'json'>, answer: Answer, told: (answer: Answer) => string[]): void {
  const lines = json ? [inertJson(answer)] : told(answer);
  if (lines.length > 0) process.stdout.write(`${lines.join('\n')}\n`);
}

/** Returns an error in one line: its code, and then its sentences, which need not say the code again. */
export function faultText(fault: Fault): string {
  const { code, hint, detail } = fault;
  const told = saidOf(fault);
  const sentences = [told?.replace(` (${code})`, ''), hint, told === detail ? '' : detail].filter(
    (sentence) => sentence,
  );
  const said = sentences.map((sentence, at) => {
    const isLast = at === sentences.length - 1;
    return isLast || /[.!?]$/.test(sentence ?? '') ? sentence : `${sentence}.`;
  });
  return [code, said.join(' ')].filter(Boolean).join(': ');
}

/** Returns a line that ends where the terminal does. */
export const line = (text: string) => clip(text, terminalWidth());

/** Reads, and makes sure that these lists are in the answer: a project of another release may answer in another shape. */
export async function readLists<Answer>(
  api: Api,
  name: string,
  query: Record<string, unknown>,
  ...lists: (keyof Answer & string)[]
): Promise<Answer> {
  const answer = await api.read<Answer>(name, query);
  const missing = lists.find((list) => !Array.isArray(answer[list]));
  if (missing) {
    throw new ApiError(4, {
      message: `millrace_${name} answers without ${missing}: the project is of another release than this command.`,
      hint: 'Compare them with npx millrace doctor.',
    });
  }
  return answer;
}
