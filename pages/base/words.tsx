// Texts that users and services wrote: never HTML, cut to a length, and with nothing in them that hides or turns round.
import { cut, visible } from './visible.ts';

interface WordsProps {
  text: string | null | undefined;
  /** How many characters are shown. */
  most?: number;
}

/** A text of somebody else's, in a run of its own so that its direction stays inside. */
export function Words({ text, most = 200 }: WordsProps) {
  if (text === null || text === undefined) return null;
  return <bdi class="words">{visible(cut(String(text), most))}</bdi>;
}
