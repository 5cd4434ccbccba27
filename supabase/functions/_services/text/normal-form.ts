// Unicode's own stream-safe form allows 30 marks on one letter, and no script needs as many. Ordering the marks of a letter takes
// time with the square of their number, so that what is more goes first.
const excessMarks = /(\p{M}{30})\p{M}+/gu;

/** The text in one of Unicode's normal forms, in time in proportion to its length: the marks on one letter after the 30th go. */
export function normalForm(text: string, form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): string {
  return text.replace(excessMarks, '$1').normalize(form);
}
