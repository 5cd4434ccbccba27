// Texts that users and services wrote: never HTML, cut to a length, and with nothing in them that hides or turns round.
import { Fragment } from 'preact';
import { cut, visible } from '../../operators/visible.ts';

interface WordsProps {
  text: string | null | undefined;
  /** How many characters are shown. */
  most?: number;
}

/** After these a name may break, so that it breaks nowhere else while there is room. */
const joints = /(?<=[_./:-])(?=[^_./:-])/;

/** A text of somebody else's, in a run of its own so that its direction stays inside. */
export function Words({ text, most = 200 }: WordsProps) {
  if (text === null || text === undefined || text === '') return null;
  const parts = visible(cut(String(text), most)).split(joints);
  return (
    <bdi class="words">
      {parts.map((part, place) => (
        <Fragment key={place}>
          {place > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </bdi>
  );
}
