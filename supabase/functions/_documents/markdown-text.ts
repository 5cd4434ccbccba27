import { excerpt } from '../_millrace/mod.ts';

const heading = /^#{1,6} +\S/m;
const fence = /^(?:```|~~~)/m;
const link = /\[[^[\]\n]{1,500}\]\((?:[^()\s]|\([^()\s]*\)){1,2000}\)/;
const underlined = /^([^\s#>|`-][^\n]{0,200})\n(=+|-+)[^\S\n]*$/gm;

/** Whether a text is Markdown: whether it has a heading, a block of code or a link as Markdown writes them. */
export function hasMarkdownMarks(text: string): boolean {
  return (
    heading.test(text) || fence.test(text) || link.test(text) || /^[^\s#>|`-][^\n]{0,200}\n={3,}[^\S\n]*$/m.test(text)
  );
}

const hashLine = /^ {0,3}#/;
const codeLine =
  /[;{}\\]$|^\s*(?:def|class|import|from|if|elif|else|for|while|return|export|set|echo|function|fi|done|end|sudo|const|let|var)\b|^\s*[\w.-]+\s*\+?=\s*\S|\w\([^()]*\)$/;
const mostCodeLines = 2000;
const longestCodeLine = 300;
const leastCode = 0.4;

/**
 * Whether a text is a program's or a setting's, whose lines with # are comments: by its first line, or by what the lines
 * between those look like.
 */
export function isCode(text: string): boolean {
  if (text.startsWith('#!')) return true;
  if (fence.test(text)) return false;
  const lines = text.slice(0, mostCodeLines * longestCodeLine).split('\n', mostCodeLines);
  const told = lines
    .map((line) => excerpt(line, longestCodeLine).trimEnd())
    .filter((line) => line && !hashLine.test(line));
  return told.length > 0 && told.filter((line) => codeLine.test(line)).length >= told.length * leastCode;
}

/** Writes headings that are underlined with = or - as those with #. */
export function withMarkedHeadings(markdown: string): string {
  return markdown.replace(underlined, (lines, title: string, line: string, at: number) => {
    const opensParagraph = at === 0 || /\n[^\S\n]*\n$/.test(markdown.slice(Math.max(0, at - 80), at));
    return line.length > 1 && opensParagraph ? `${line.startsWith('=') ? '#' : '##'} ${title}` : lines;
  });
}
