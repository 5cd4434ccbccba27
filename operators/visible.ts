// Texts that users and services wrote, with nothing in them that hides, turns round or steers a terminal.

// Controls, formats (the bidirectional ones among them), lone surrogates, private characters, ends of lines that are none of
// ours, and what no font draws, such as the tags and selectors in which a whole sentence can hide; not those that a sign of
// writing or picture needs for its look.
export const hidden = /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** More marks on one letter than any script has: they would be drawn over the lines above and beneath. */
const piled = /(\p{M}{4})\p{M}+/gu;

/** Writes what cannot be seen by its number, such as ⟨U+202E⟩, and leaves out what would cover other texts. */
export function visible(text: string): string {
  return text.replace(piled, '$1…').replace(hidden, (character) => {
    if (character === '\n' || character === '\t') return character;
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0');
    return `⟨U+${code}⟩`;
  });
}

/** Cuts a text to so many characters. */
export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
