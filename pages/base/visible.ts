// Texts that users and services wrote, with nothing in them that hides, turns round or steers a terminal.

// Controls, formats (the bidirectional ones among them), lone surrogates, private characters, ends of lines that are none of
// ours, and what no font draws, such as the tags and selectors in which a whole sentence can hide; not those that a sign of
// writing or picture needs for its look.
export const hidden = /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

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
