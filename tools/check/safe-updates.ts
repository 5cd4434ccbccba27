// The rule of the extension safeupdate, which the Data API of a hosted project loads: an UPDATE or a DELETE has a WHERE. It holds for all
// that a call reaches, functions and the texts that they execute included, so all SQL of the project keeps to it.
import fs from 'node:fs';
import path from 'node:path';
import { loadModule, parseSync } from '@libpg-query/parser';
import { type Finding, filesIn } from './sql-statements.ts';

/** A migration that is built of engine/, or was. */
const ofEngine = /_millrace(?:_\d[\d.]*)?\.sql$/;
/** A quoted text, a comment, a word, or a mark. `$1` is a parameter and opens no quote. */
const token =
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"[^"]*"|(\$(?:[a-z_]\w*)?\$)[\s\S]*?\1|\$\d+|[\w.%$]+|[^\s\w]/gi;
/** Words before the `update` of a row lock, a conflict, a trigger or a grant, which is no statement. */
const noStatement = ['for', 'key', 'do', 'or', 'before', 'after', 'of', 'grant', 'revoke', ','];

/** Looks at the SQL below `root`. Resolves to a line for each statement without a WHERE, empty when there is none. */
export async function checkSafeUpdates(root: string): Promise<string> {
  const files = ['engine', 'supabase/migrations'].flatMap((folder) => filesIn(root, folder, '.sql'));
  const findings = await Promise.all(
    files
      .filter((file) => !ofEngine.test(file))
      .map(async (file) =>
        (await unsafeUpdates(fs.readFileSync(path.join(root, file), 'utf8'))).map((found) => ({ file, ...found })),
      ),
  );
  return findings
    .flat()
    .map(({ file, line, fault }) => `${file}:${line}: ${fault}`)
    .join('\n');
}

/** Resolves to the statements of a text without a WHERE, in the bodies of its functions and in its quoted texts as well. */
export async function unsafeUpdates(text: string): Promise<Omit<Finding, 'file'>[]> {
  await loadModule();
  return found(text, 1);
}

function found(source: string, firstLine: number, mayFollow = (_before: string) => true): Omit<Finding, 'file'>[] {
  const text = joined(source);
  const tokens = [...text.matchAll(token)].filter(([word]) => !/^(--|\/\*)/.test(word));
  const lineOf = (at: number) => firstLine + text.slice(0, at).split('\n').length - 1;
  return tokens.flatMap(({ 0: word, 1: quote, index }, place) => {
    if (quote !== undefined) return found(word.slice(quote.length, -quote.length), lineOf(index));
    if (word.startsWith("'")) return found(word.slice(1, -1).replaceAll("''", "'"), lineOf(index), startsOfText);
    if (!begins(tokens, place) || !mayFollow(tokens[place - 1]?.[0] ?? '')) return [];
    const statement = text.slice(index, endOf(tokens, place, text.length));
    const fault = faultOf(statement);
    return fault ? [{ line: lineOf(index), fault: `${fault}: ${statement.replace(/\s+/g, ' ').slice(0, 60)}` }] : [];
  });
}

/** Returns whether a statement may follow this word of a text; after any other word the text is a sentence. */
const startsOfText = (before: string) => /^(?:|;|\(|\)|begin|then|else|loop|instead|also)$/i.test(before);
/** A name or a call that is concatenated between two texts. */
const between = /'(\s*\|\|\s*[\w.]+(?:\((?:[^'()]|\([^'()]*\))*\))?\s*\|\|\s*)'/g;

/** Joins a text that goes on in the next line, or after a concatenated part; other lines stay where they are. */
function joined(text: string): string {
  const blank = (part: string) => part.replaceAll(/[^\n]/g, ' ');
  return text
    .replaceAll(between, (_, part: string) => `%s${blank(part)}`)
    .replaceAll(/'(\s*\n\s*)'/g, (_, part: string) => blank(part));
}

function begins(tokens: RegExpExecArray[], place: number): boolean {
  const at = (offset: number) => tokens[place + offset]?.[0].toLowerCase() ?? '';
  if (at(0) === 'delete') return at(1) === 'from' && !noStatement.includes(at(-1));
  return at(0) === 'update' && !noStatement.includes(at(-1)) && [2, 3, 4, 5, 6].some((offset) => at(offset) === 'set');
}

/** Returns where the statement at `place` ends: at a semicolon, or at the bracket that closes what it stands in. */
function endOf(tokens: RegExpExecArray[], place: number, length: number): number {
  let depth = 0;
  for (const { 0: word, index } of tokens.slice(place)) {
    if (word === '(' || word === '[') depth += 1;
    if (word === ')' || word === ']') depth -= 1;
    if (depth < 0 || word === ';') return index;
  }
  return length;
}

/**
 * Parses a statement without the additions of plpgsql, and with values in place of format()'s; returns its fault, if
 * any.
 */
function faultOf(statement: string): string | undefined {
  const plain = statement
    .replaceAll(/(?:%(?:\d+\$)?[ILs])+/g, '%')
    .replaceAll(/(?<=\w)%/g, '')
    .replaceAll(/\bset %/g, 'set x = x')
    .replaceAll('(%)', '(select)')
    .replaceAll('%', 'x')
    .replace(/\binto\s+(?:strict\s+)?[\w.]+(?:\s*,\s*[\w.]+)*\s*$/i, '')
    .replace(/\.$/, '');
  try {
    const [{ stmt = {} } = {}] = parseSync(plain).stmts ?? [];
    const [{ whereClause } = {} as { whereClause?: object }] = Object.values(
      stmt as Record<string, { whereClause?: object }>,
    );
    return whereClause ? undefined : 'no WHERE';
  } catch {
    return 'Postgres cannot read this';
  }
}
