/**
 * What a model answered, or null where it answered nothing or the word for what is absent. Stages ask for such a word rather
 * than for null, since a model that may leave a field out does so too easily.
 */
export function presentOrNull(answer: string, absent: string): string | null {
  const text = answer.trim();
  return text === '' || text.toLowerCase() === absent.toLowerCase() ? null : text;
}
