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

/** Writes headings that are underlined with = or - as those with #. */
export function withMarkedHeadings(markdown: string): string {
  return markdown.replace(underlined, (lines, title: string, line: string, at: number) => {
    const opensParagraph = at === 0 || /\n[^\S\n]*\n$/.test(markdown.slice(Math.max(0, at - 80), at));
    return line.length > 1 && opensParagraph ? `${line.startsWith('=') ? '#' : '##'} ${title}` : lines;
  });
}
