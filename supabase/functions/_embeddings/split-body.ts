/** The most characters of a chunk, in UTF-16 code units: some 500 tokens of English. */
const most = 2_000;
/** A shorter paragraph shares its chunk with the next. */
const least = 400;
/** Where a paragraph that is too long is cut, best first. */
const ends = ['\n', '. ', ' '];

/**
 * Cuts a text into chunks, each a piece of it: paragraphs, short ones together, long ones in parts. An edit changes the chunks
 * of the paragraphs around it alone. A chunk that stands in the text twice is listed once.
 */
export function splitBody(body: string): string[] {
  const chunks: string[] = [];
  let start = 0;
  const close = (end: number) => {
    for (const chunk of cut(body.slice(start, end).trim())) chunks.push(chunk);
    start = end;
  };
  for (const { index, 0: blank } of body.matchAll(/\n\s*\n/g)) {
    if (index - start >= least) close(index + blank.length);
  }
  close(body.length);
  return [...new Set(chunks)];
}

/** A text in parts of at most so many characters. */
function cut(text: string): string[] {
  if (text === '') return [];
  if (text.length <= most) return [text];
  const at = endWithin(text);
  return [text.slice(0, at).trimEnd(), ...cut(text.slice(at).trimStart())];
}

function endWithin(text: string): number {
  const part = text.slice(0, most);
  for (const end of ends) {
    const at = part.lastIndexOf(end) + end.length;
    if (at > most / 2) return at;
  }
  // Half of a character would be no text.
  return /[\uD800-\uDBFF]$/.test(part) ? most - 1 : most;
}
