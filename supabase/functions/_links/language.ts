/** Words that nearly every text of a language has, and few of another. */
const commonWords: Record<string, string> = {
  en: 'the and of to in is for with you we our are that this on',
  de: 'der die und das ist für mit wir sie nicht ein eine auf bei zu',
  fr: 'le la les et des est pour avec nous vous dans une sur pas du',
  es: 'el los y las es para con que una nuestro en por del se su',
  it: 'il gli di e che per con una nostro sono della nel non si le',
  nl: 'de het een en van voor met wij je niet op bij zijn ons dat',
  pt: 'os as e para com uma que do da nosso em não por são um',
};
const leastHits = 3;
const probe = 5_000;

/** The language of a text: by its words where they tell it, else as the page says, if it says it. */
export function languageOf(text: string, said: string | null): string | null {
  const words =
    text
      .slice(0, probe)
      .toLowerCase()
      .match(/\p{L}+/gu) ?? [];
  const hits = Object.entries(commonWords).map(([language, list]) => {
    const common = new Set(list.split(' '));
    return { language, count: words.filter((word) => common.has(word)).length };
  });
  const [best, second] = hits.toSorted((a, b) => b.count - a.count);
  if (best && second && best.count >= leastHits && best.count > second.count * 1.3) return best.language;
  return /^[a-z]{2,3}\b/i.exec(said ?? '')?.[0].toLowerCase() ?? null;
}
