import { storableText } from '../../_millrace/mod.ts';

/** A text as it is stored: one kind of line end, nothing that cannot be kept or seen, no blanks at the ends of lines. */
export function tidyText(text: string): string {
  const clean = storableText(text.replace(/\r\n?|\u2028|\u2029/g, '\n'))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to go.
    .replace(/[\u0001-\u0008\u000b\u000e-\u001f\u007f\u00ad\ufeff]/g, '')
    .replace(/(?<![^\S\n\f])[^\S\n\f]+(?=[\n\f])/g, '')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+/, '');
  return clean.trimEnd();
}
