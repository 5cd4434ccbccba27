/** An item of a list, with a number that rises from item to item where nothing was misread. */
export interface Numbered {
  value: number;
  /** How much is lost when it is left out. */
  weight: number;
}

/**
 * Picks the items that make up the heaviest sequence of numbers that never fall. Takes n log n steps.
 */
export function risingNumbers(items: readonly Numbered[]): boolean[] {
  const ranks = new Map(
    [...new Set(items.map(({ value }) => value))].sort((a, b) => a - b).map((v, at) => [v, at + 1]),
  );
  // The best sequence that ends at a rank or below it, as a tree of prefix maxima: its weight, and its last item.
  const best: { weight: number; item: number }[] = Array.from({ length: ranks.size + 1 }, () => ({
    weight: 0,
    item: -1,
  }));
  const before: number[] = [];
  let heaviest = { weight: 0, item: -1 };
  items.forEach(({ value, weight }, item) => {
    const rank = ranks.get(value) ?? 0;
    let under = { weight: 0, item: -1 };
    for (let at = rank; at > 0; at -= at & -at) if ((best[at]?.weight ?? 0) > under.weight) under = best[at] ?? under;
    before[item] = under.item;
    const found = { weight: under.weight + weight, item };
    if (found.weight > heaviest.weight) heaviest = found;
    for (let at = rank; at < best.length; at += at & -at) if (found.weight > (best[at]?.weight ?? 0)) best[at] = found;
  });
  const rising = items.map(() => false);
  for (let item = heaviest.item; item >= 0; item = before[item] ?? -1) rising[item] = true;
  return rising;
}
