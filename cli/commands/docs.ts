// millrace docs: the pages that the package brings along, for a person or an assistant without a network.
import fs from 'node:fs';
import path from 'node:path';
import { many } from '../../operators/numbers.ts';
import { CommandError } from '../command-error.ts';
import { defineCommand } from '../define-command.ts';
import { packageFolder } from '../project/shipped.ts';

export const docs = defineCommand({
  usage: `npx millrace docs [PAGE | WORD …]
  Prints a page of the documentation, such as install, errors or patterns/graph. Other words find the lines that hold all of
  them. Without a word it lists the pages, which are files of the package: node_modules/millrace/docs.`,
  options: {},
  takesWords: Number.POSITIVE_INFINITY,
  run: async ({ words, values: { json } }) => {
    const pages = readPages();
    if (words.length === 0)
      return json ? JSON.stringify({ pages: pages.map(withoutText) }) : pages.map(listed).join('\n');
    const asked = words.join(' ').toLowerCase().replace(/\.md$/, '');
    const page = pages.find(({ name }) => name === asked) ?? pages.find(({ name }) => name.split('/').at(-1) === asked);
    if (page) return json ? JSON.stringify(page) : page.text.trimEnd();
    const lines = linesWith(pages, words);
    if (lines.length === 0)
      throw new CommandError(`No page holds ${words.join(' ')}: npx millrace docs lists the pages.`);
    if (json) return JSON.stringify({ lines });
    const more = lines.length - mostLines;
    const shown = lines.slice(0, mostLines).map((line) => `${line.page}:${line.line}: ${line.text}`);
    return [...shown, ...(more > 0 ? [`… and ${many(more, 'line')} more: say more words, or a page.`] : [])].join('\n');
  },
});

interface Page {
  /** Its path in `docs`, without the ending. */
  name: string;
  /** The page's line in llms.txt, or its title. */
  about: string;
  text: string;
}

const mostLines = 40;

const withoutText = ({ name, about }: Page) => ({ name, about });

const listed = ({ name, about }: Page) => `${name.padEnd(34)} ${about}`;

function readPages(): Page[] {
  const folder = path.join(packageFolder, 'docs');
  const index = fs.readFileSync(path.join(folder, 'llms.txt'), 'utf8');
  const about = new Map(
    [...index.matchAll(/^- \[[^\]]*\]\(([^)]+)\.md\): (.*)$/gm)].map(([, name, text]) => [name, text]),
  );
  // Pages that share a line of llms.txt are listed by their own titles.
  const isShared = (text: string | undefined) => [...about.values()].filter((other) => other === text).length > 1;
  const files = fs.readdirSync(folder, { recursive: true }).map((file) => String(file).split(path.sep).join('/'));
  return files
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .map((file) => {
      const text = fs.readFileSync(path.join(folder, file), 'utf8');
      const name = file.replace(/(?:\/README)?\.md$/, '');
      const said = about.get(file.slice(0, -3));
      const title = /^# (.*)/m.exec(text)?.[1] ?? '';
      return { name, about: said === undefined || isShared(said) ? title : said, text };
    })
    .sort(({ name: a }, { name: b }) => Number(a.includes('/')) - Number(b.includes('/')) || a.localeCompare(b));
}

/** Returns the lines that hold all of these words, in whichever case. */
function linesWith(pages: Page[], words: string[]) {
  const wanted = words.map((word) => word.toLowerCase());
  return pages.flatMap(({ name, text }) =>
    text.split('\n').flatMap((line, at) => {
      const low = line.toLowerCase();
      return wanted.every((word) => low.includes(word)) ? [{ page: name, line: at + 1, text: line.trim() }] : [];
    }),
  );
}
