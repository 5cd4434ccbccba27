// How sentences read: none of the documents is too long, and no comment begins with a pronoun that hides its subject.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/** At most so many words has a sentence of the documents. Code in backticks counts as one word. */
const mostWords = 30;
const document = /\.md$/;
/** Documents of tests and demos, and the skill, which a program writes. */
const exempt = /^(?:skills\/|tests\/.*\.md$|local\/demo\/samples\/)/;
const code =
  /^(?:engine|cli|local|operators|packages|pages|tests|tools|supabase\/functions)\/.*\.(?:sql|plpgsql|ts|tsx|mjs)$/;
const written = /^engine\/releases\/|^pages\/dist\//;
/** A reader has to guess which thing such a subject means. */
const hidden =
  /(?:^|[.!?] )(?:What|That|Those|Whoever|Whatever|Somebody|One(?= (?:that|who|whose|which|row|sentence|line|item|of|with|is|was|has|may|can|alone|after)\b))\b/;

/** Looks for long sentences and hidden subjects in what git knows at `root`. Resolves to a line for each, empty when there is none. */
export function sentenceFaults(root: string): string {
  const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');
  return files
    .filter((file) => fs.existsSync(path.join(root, file)) && !exempt.test(file) && !written.test(file))
    .flatMap((file) => {
      if (!(document.test(file) || code.test(file))) return [];
      const text = fs.readFileSync(path.join(root, file), 'utf8');
      return document.test(file) ? longSentences(file, text) : hiddenSubjects(file, text);
    })
    .join('\n');
}

/** Returns the sentences of a Markdown text that are too long, each as `file: N words: beginning`. */
export function longSentences(file: string, text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/^<.*$/gm, '');
  const blocks = prose.split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|\n(?=#)/);
  const parts = blocks.flatMap((block) => (block.startsWith('|') ? block.split(/(?<!\\)\|/) : [block]));
  return parts
    .flatMap((part) =>
      sentencesOf(
        withoutTests(part)
          .replaceAll(/`[^`]*`/g, 'X')
          .replaceAll(/\]\([^)]*\)/g, ']'),
      ),
    )
    .flatMap((sentence) => {
      const words = sentence.split(' ').filter((word) => /\w/.test(word)).length;
      return words > mostWords ? [`${file}: ${words} words: ${sentence.slice(0, 60)}…`] : [];
    });
}

/** Returns the comments of a program with a sentence whose subject is a pronoun, each as `file:line: sentence`. */
export function hiddenSubjects(file: string, text: string): string[] {
  return commentsOf(text).flatMap(({ line, comment }) => {
    const found = hidden.exec(comment);
    return found ? [`${file}:${line}: ${comment.slice(found.index, found.index + 70)}`] : [];
  });
}

/** The names of tests are links that no author can shorten. */
const withoutTests = (text: string) => text.replaceAll(/\[[^\]]*\]\((?:\.\.\/)+tests\/[^)]*\)/g, '');

const sentencesOf = (text: string) =>
  text
    .replaceAll(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.!?:](?:\*\*)?)\s+(?=[A-Z"*([])/);

/** Returns the comments of a text in SQL or TypeScript that stand on lines of their own, each as one line of text. */
function commentsOf(text: string): { line: number; comment: string }[] {
  const comments: { line: number; parts: string[] }[] = [];
  let isOpen = false;
  for (const [at, line] of text.split('\n').entries()) {
    const said = /^\s*(?:\/\*\*?|\*(?!\/)|\/\/|--)\s?(.*?)(?:\s*\*\/)?$/.exec(line);
    if (!said || /^\s*\/\*/.test(line)) isOpen = false;
    if (said) {
      if (!isOpen) comments.push({ line: at + 1, parts: [] });
      comments.at(-1)?.parts.push(said[1] ?? '');
      // A module's hook is named by a comment of its own.
      isOpen = !/\*\/\s*$|^-- on \w+$/.test(line);
    }
  }
  return comments.map(({ line, parts }) => ({ line, comment: parts.join(' ').replaceAll(/\s+/g, ' ').trim() }));
}
