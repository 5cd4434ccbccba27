import type { Finding } from '../_millrace/agents/agent-conversation.ts';
import type { FindResult } from '../_pipelines/toc-results.ts';

// The verdict on all pages, which begins the answer of look_at_pages: text of the shown pages cannot pass for it.
const note = /^<look-\w+>\nBy the look[^\n]*\nfirst contents page: (\d+)\nlast contents page: (\d+)[^\n]*\n([^<]*)/;
const other = /^Pages (\d+) to (\d+) look/gm;

/**
 * Says what in a range contradicts the look of the pages, as the last look at them told it; null where nothing does. Where no
 * pages look like contents, nobody knows better than the model.
 */
export function rangeContradiction(
  { first_contents_page: first, last_contents_page: last }: FindResult,
  findings: readonly Finding[],
): string | null {
  const looked = findings.findLast(({ name }) => name === 'look_at_pages');
  const [, from = '0', to = '0', others = ''] = note.exec(looked?.output ?? '') ?? [];
  if (from === '0') return null;
  const ranges = [[from, to], ...[...others.matchAll(other)].map(([, begin, end]) => [begin, end])];
  if (ranges.some(([begin, end]) => Number(begin) === first && Number(end) === last)) return null;
  const said = first === 0 ? 'there is none' : `it stands on pages ${first} to ${last}`;
  return `you say that ${said}, but by the look of their lines it stands on pages ${from} to ${to}.`;
}
