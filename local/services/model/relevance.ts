const stopWords = new Set(
  `a about above after all also an and any are as at be been before being below both but by can could did do does each
  few for from had has have having he her here his how i if in into is it its itself just may me might more most must my
  no nor not of off on once one only or other our out over own per she should so some such than that the their them then
  there these they this those through to too under until up very was we were what when where which while who whom whose
  why will with would you your`.split(/\s+/),
);
const suffixes = ['ations', 'ation', 'ments', 'ment', 'ings', 'ing', 'ers', 'er', 'ed', 'es', 's', 'ly'];

/** Returns the words of a text that carry meaning: lower case, parted at camelCase and snake_case, roughly stemmed. */
export function wordsOf(text: string): string[] {
  return text
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1 && !stopWords.has(word))
    .map(stem);
}

function stem(word: string): string {
  if (word.endsWith('ies') && word.length > 5) return `${word.slice(0, -3)}y`;
  const suffix = suffixes.find((end) => word.endsWith(end) && word.length - end.length >= 4);
  return suffix === undefined ? word.replace(/e$/, '') : word.slice(0, -suffix.length).replace(/e$/, '');
}

/** The words by which a value is searched: the words of its name weigh more than those of its description. */
export interface Query {
  name: string[];
  description: string[];
}

/** A piece of source text; `key` says under what it stood: a heading, a label, a JSON key, a tag. */
export interface Unit {
  text: string;
  key: string;
  kind: 'sentence' | 'heading';
}

/** Ranks the pieces of one source text against queries. */
export class Relevance {
  readonly units: Unit[];
  readonly #words: { text: Set<string>; key: Set<string> }[];
  readonly #frequency = new Map<string, number>();

  constructor(units: Unit[]) {
    this.units = units;
    this.#words = units.map(({ text, key }) => ({ text: new Set(wordsOf(text)), key: new Set(wordsOf(key)) }));
    for (const { text } of this.#words) {
      for (const word of text) this.#frequency.set(word, (this.#frequency.get(word) ?? 0) + 1);
    }
  }

  /** In how many pieces a word occurs. */
  frequency(word: string): number {
    return this.#frequency.get(word) ?? 0;
  }

  /** Returns how much of the query the piece at `index` answers; 0 when they share no word. */
  overlap(index: number, query: Query): number {
    const words = this.#words[index];
    if (!words) return 0;
    const weigh = (asked: string[], weight: number) =>
      asked.reduce((sum, word) => {
        const inKey = words.key.has(word) ? 2 : 0;
        const inText = words.text.has(word) ? this.#rarity(word) : 0;
        return sum + weight * (inKey + inText);
      }, 0);
    return weigh(query.name, 2) + weigh(query.description, 1);
  }

  /** Returns how well the piece at `index` would stand for the whole text: common words of the text, early, of a fair length. */
  salience(index: number): number {
    const words = this.#words[index]?.text ?? new Set<string>();
    const common = [...words].reduce((sum, word) => sum + Math.min(this.frequency(word) - 1, 4), 0);
    const length = this.units[index]?.text.length ?? 0;
    const fair = length >= 40 && length <= 240 ? 0.4 : 0;
    return common / (words.size + 4) / 4 + fair + 0.3 / (1 + index / 4);
  }

  #rarity(word: string): number {
    return Math.log(1 + this.units.length / (1 + this.frequency(word)));
  }
}
