/** Cuts a text to at most `max` characters: at the end of a clause if that leaves enough, else between two words. */
export function cutTo(text: string, max: number): string {
  const characters = [...text];
  if (characters.length <= max) return text;
  const head = characters.slice(0, max).join('');
  const clause = Math.max(...[...head.matchAll(/[,;:.!?](?=\s)/g)].map((match) => match.index), 0);
  if (clause >= max * 0.4) return head.slice(0, clause);
  const atWord = /\s/.test(characters[max] ?? '') ? head : head.replace(/\s+\S*$/, '');
  return atWord
    .replace(/(\s+(a|an|and|as|at|by|for|from|in|is|of|on|or|so|that|the|to|which|with))+$/i, '')
    .replace(/[\s,;:–-]+$/, '');
}

/** Names found in the text, as runs of capitalised words, the most frequent first. */
export function namesIn(texts: string[]): string[] {
  const counts = new Map<string, number>();
  const capitalised = /(?<![\p{L}\p{N}])\p{Lu}[\p{L}\p{N}'’&-]*(?:\s+(?:&\s+)?\p{Lu}[\p{L}\p{N}'’&-]*)*/gu;
  for (const text of texts) {
    for (const { 0: name, index } of text.matchAll(capitalised)) {
      // A single capital at the start of a sentence says nothing.
      if (!/\s/.test(name) && (index === 0 || name.length < 3)) continue;
      counts.set(name, (counts.get(name) ?? 0) + (/\s/.test(name) ? 2 : 1));
    }
  }
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** Texts within quotation marks. */
export function quotedIn(text: string): string[] {
  return [...text.matchAll(/"([^"\n]{1,200})"|“([^”\n]{1,200})”|'([^'\n]{2,200})'(?!\p{L})/gu)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  );
}
