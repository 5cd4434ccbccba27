import { excerpt } from '../_millrace/mod.ts';
/** A part of a text that begins with a heading, or at the text's beginning. */
export interface Section {
  start: number;
  end: number;
  /** Of the heading that begins it, 1 to 6; 0 where none does. */
  level: number;
  /** The headings it stands under, its own last. */
  path: string[];
  /** Whether there is anything under the heading itself. */
  hasBody: boolean;
}

const longestHeading = 200;
/** A longer line is no heading, whatever it begins with. */
const longestLine = 1000;
const line = /[^\n\f]*(?:[\n\f]|$)/y;
const fence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const hashes = /^ {0,3}(#{1,6})(?![^ \t])/;
/** Line ends elsewhere; here they are part of a line. */
const otherLineEnd = /[\r\u2028\u2029]/;
const underline = /^ {0,3}(=+|-{3,})[ \t]*$/;
/** Markup and blanks that a heading's plain form lacks. */
const markup = /[[*_`\\]|\s\s|[^\S ]/;
/** Lines that are no paragraph: a line of dashes below does not make them a heading. */
const noParagraph = /^(?: {4}|\t| {0,3}(?:[>|#]|[-*+] |\d+[.)] |[-=*_]{3,}[ \t]*$))/;

/**
 * Parts a text by its Markdown headings, of both forms (# and underlined); those within fenced code are none. The sections
 * follow one another without gaps, in order.
 */
export function sectionsOf(text: string): Section[] {
  const sections: Section[] = [];
  const above: { level: number; title: string }[] = [];
  let current: Section = { start: 0, end: 0, level: 0, path: [], hasBody: false };
  const end = (at: number) => {
    current.end = at;
    if (at > current.start) sections.push(current);
  };
  const begin = (start: number, level: number, title: string) => {
    end(start);
    while ((above.at(-1)?.level ?? 0) >= level) above.pop();
    above.push({ level, title });
    const path: string[] = [];
    for (const heading of above) if (heading.title) path.push(heading.title);
    current = { start, end: start, level, path, hasBody: false };
  };

  let openFence: string | null = null;
  // The last line, while it is a paragraph of its own: what is underlined is a heading.
  let single: { start: number; title: string; hadBody: boolean } | null = null;
  let mayBegin = true;
  for (let at = 0; at < text.length; ) {
    line.lastIndex = at;
    const whole = line.exec(text)?.[0] ?? '';
    const content = withoutEnd(whole);
    // Most lines begin with nothing that means anything, and asking for it takes long.
    const first = content.trimStart().charAt(0);
    const isBlank = first === '';
    const mark = first === '`' || first === '~' ? fence.exec(content)?.[1] : undefined;
    const isShort = content.length <= longestLine;
    const marked = first === '#' && openFence === null && isShort ? headingIn(content) : null;
    const underlined = single && underline.exec(content);
    const last = single;
    single = null;
    if (openFence !== null) {
      if (mark?.startsWith(openFence) && content.trim() === mark) openFence = null;
    } else if (marked) {
      begin(at, marked.level, plainTitle(marked.title));
    } else if (last && underlined?.[1]) {
      current.hasBody = last.hadBody;
      begin(last.start, underlined[1].startsWith('=') ? 1 : 2, plainTitle(last.title));
    } else if (!isBlank) {
      if (mayBegin && isShort && !mark && !noParagraph.test(content)) {
        single = { start: at, title: content, hadBody: current.hasBody };
      }
      openFence = mark ?? null;
      current.hasBody = true;
    }
    mayBegin = isBlank || Boolean(marked) || Boolean(underlined);
    at += whole.length;
  }
  end(text.length);
  return sections;
}

/** The heading that a line of hashes is. Part by part: one pattern for all of it took minutes of CPU for blanks by the thousand. */
function headingIn(content: string): { level: number; title: string } | null {
  const [opening, marks] = hashes.exec(content) ?? [];
  if (!opening || !marks || otherLineEnd.test(content)) return null;
  return {
    level: marks.length,
    title: content
      .slice(opening.length)
      .trim()
      .replace(/[ \t]#+$/, ''),
  };
}

/** A line without what ends it. */
function withoutEnd(whole: string): string {
  const content = whole.endsWith('\n') || whole.endsWith('\f') ? whole.slice(0, -1) : whole;
  return content.endsWith('\r') ? content.slice(0, -1) : content;
}

/** A heading without Markdown's marks, on one line and no longer than a heading is. */
function plainTitle(title: string): string {
  const isPlain = !markup.test(title) && title.length <= longestHeading;
  if (isPlain) return title.trim();
  const plain = title
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/(\*\*|__|`)(.+?)\1/g, '$2')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
  return excerpt(plain, longestHeading);
}
