/**
 * A model's answer, or null where it is empty or the word for an absent value. Stages ask for such a word instead of
 * null: a model that may leave a field out does so too easily.
 */
export function presentOrNull(answer: string, absent: string): string | null {
  const text = answer.trim();
  return text === '' || text.toLowerCase() === absent.toLowerCase() ? null : text;
}
