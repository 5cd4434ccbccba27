// Texts that users and services wrote: never HTML, cut to a length, and with nothing in them that hides or turns round.

// Controls, formats (the bidirectional ones among them), lone surrogates and private characters; not tab and line feed.
const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu;

/** Writes what cannot be seen by its number, such as ⟨U+202E⟩. */
export function visible(text: string): string {
  return text.replace(hidden, (character) => {
    if (character === '\n' || character === '\t') return character;
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0');
    return `⟨U+${code}⟩`;
  });
}

/** Cuts a text to so many characters. */
export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

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
