import { excerpt } from '../_millrace/mod.ts';
import type { KgResult } from '../_pipelines/chunks-results.ts';

/** A chunk has less. The rest of a longer text is left out. */
const longestText = 20_000;
const mostNames = 15;
const mostRelations = 10;
const longestName = 100;
const longestDescription = 300;
const mostWordsBetween = 6;

const particle = '(?:of|de|del|della|di|da|do|du|des|la|le|van|von|der|den|bin|al|el)';
const word = "\\p{Lu}[\\p{L}\\p{N}]*(?:['’&.-](?=[\\p{L}\\p{N}])[\\p{L}\\p{N}]+)*";
const runOfNames = new RegExp(
  `(?<![\\p{L}\\p{N}])${word}(?:(?: & | (?:${particle} ){0,2})${word}| \\d{1,4}\\b)*`,
  'gu',
);
// Words that begin a sentence with a capital and are no part of a name; others are told by the text writing them small too.
const beginnings = new Set(
  `a after all also an and as at before both but by during each every few finally for from he her here his how however i if
  in instead it its later many most much my no not now of on once one only or other our she since so some that the their
  then there these they this those though three through to today two under until we what when where which while who why
  with yet you`.split(/\s+/),
);
const ofDates = (index: number) => [
  new Date(2026, index, 1).toLocaleDateString('en', { month: 'long' }),
  new Date(2026, 0, index + 1).toLocaleDateString('en', { weekday: 'long' }),
];
const dates = new Set(Array.from({ length: 12 }, (_, index) => ofDates(index)).flat());
const segmenter = new Intl.Segmenter(undefined, { granularity: 'sentence' });

interface Mention {
  name: string;
  start: number;
  end: number;
}

/**
 * Proposes the entities of a text and the relations between two of them, for a reader to judge. It finds them by
 * capital letters and by the words between two names in a sentence. A text in a script without capitals gets no
 * proposal.
 */
export function proposeFacts(text: string): KgResult {
  const cut = excerpt(text, longestText);
  const sentences = sentencesOf(cut);
  const lower = new Set(cut.match(/(?<![\p{L}\p{N}])\p{Ll}[\p{L}\p{N}]*/gu));
  const read = sentences.map((sentence) => ({ sentence, mentions: mentionsIn(sentence, lower) }));
  const first = new Map<string, { sentence: string; times: number }>();
  for (const { sentence, mentions } of read) {
    for (const { name } of mentions) {
      const known = first.get(name);
      first.set(name, { sentence: known?.sentence ?? sentence, times: (known?.times ?? 0) + 1 });
    }
  }
  const chosen = [...first].sort((a, b) => b[1].times - a[1].times).slice(0, mostNames);
  const entities = chosen.map(([name, { sentence }]) => ({
    name,
    type: 'other' as const,
    description: excerpt(sentence, longestDescription),
  }));
  const names = new Set(chosen.map(([name]) => name));
  const relations = read.flatMap(({ sentence, mentions }) =>
    relationsIn(
      sentence,
      mentions.filter(({ name }) => names.has(name)),
    ),
  );
  return { entities, relations: relations.slice(0, mostRelations) };
}

/** Headings are left out: they often write all words with capitals. Cells of a table stand for sentences. */
function sentencesOf(text: string): string[] {
  return text
    .split(/\n\s*\n|^#.*$|\||^\s*(?:[-*+>]|\d+[.)]) /m)
    .flatMap((paragraph) => [...segmenter.segment(paragraph.replace(/\s+/g, ' '))])
    .map(({ segment }) => segment.replace(/[*_`]+/g, '').trim())
    .filter(Boolean);
}

function mentionsIn(sentence: string, lower: ReadonlySet<string>): Mention[] {
  const mentions: Mention[] = [];
  const firstLetter = sentence.search(/\p{L}/u);
  for (const { 0: run, index } of sentence.matchAll(runOfNames)) {
    const begins = index <= firstLetter;
    const [firstWord = ''] = run.split(' ', 1);
    const small = firstWord.toLowerCase();
    const isOrdinary = beginnings.has(small) || (begins && (lower.has(small) || firstWord === run));
    const name = isOrdinary ? run.slice(firstWord.length).replace(/^[ &]+/, '') : run;
    if (name.length < 2 || name.length > longestName || !/^\p{Lu}/u.test(name) || dates.has(name)) continue;
    mentions.push({ name, start: index + run.length - name.length, end: index + run.length });
  }
  return mentions;
}

/** Of two names that follow each other in a sentence, what stands between them, where it may be a verb. */
function relationsIn(sentence: string, mentions: readonly Mention[]): KgResult['relations'] {
  return mentions.slice(1).flatMap(({ name: target, start }, index) => {
    const { name: source, end } = mentions[index] as Mention;
    const between = sentence
      .slice(end, start)
      .replace(/^['’]s\b|^,/, '')
      .trim();
    const words = between.toLowerCase().split(' ');
    const isShort = words.length <= mostWordsBetween && between.length <= 80;
    const isVerb = /\p{Ll}{4}/u.test(between) && !beginnings.has(words[0] ?? '') && !/[.,;:!?()<>"“”]/.test(between);
    if (!isShort || !isVerb || source === target) return [];
    return [{ source, relation: between.toLowerCase(), target, fact: excerpt(sentence, 500) }];
  });
}
