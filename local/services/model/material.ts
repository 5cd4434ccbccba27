import { type Query, Relevance, type Unit } from './relevance.ts';
import { namesIn } from './shape-text.ts';

/** The text an answer is drawn from, and which of its pieces have been used already. */
export class Material {
  readonly relevance: Relevance;
  /** Everything that was said, for facts such as addresses and numbers. */
  readonly text: string;
  readonly names: string[];
  /** Whether short values are wanted, as for the arguments of a tool. */
  readonly terse: boolean;
  readonly #used = new Map<number, number>();

  constructor(units: Unit[], text: string, terse = false) {
    this.relevance = new Relevance(
      units.length > 0 ? units : [{ text: 'No text was given.', key: '', kind: 'sentence' }],
    );
    this.text = text;
    this.terse = terse;
    this.names = namesIn(this.units.map((unit) => unit.text));
  }

  get units(): Unit[] {
    return this.relevance.units;
  }

  /** Returns the indexes of all pieces, the best answer to the query first; pieces used before come later. */
  rank(query: Query): number[] {
    const scores = this.units.map((unit, index) => {
      const overlap = this.relevance.overlap(index, query);
      const kind = unit.kind === 'sentence' ? 0.3 : 0;
      return overlap + this.relevance.salience(index) + kind - 3 * (this.#used.get(index) ?? 0);
    });
    return this.units.map((_, index) => index).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  }

  /** Remembers that a piece has been used, so that the next value takes another. */
  use(index: number): void {
    this.#used.set(index, (this.#used.get(index) ?? 0) + 1);
  }
}
