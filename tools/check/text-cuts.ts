// Checks that texts are cut to a length by excerpt() alone, which leaves no half of a character.
import fs from 'node:fs';
import path from 'node:path';

/** A bound of a text's length is called longest… or a share; most… is how many there are of something. A template is a text. */
const cut =
  /(?:`\.(?:slice|substring|substr)\(|\.(?:slice|substring|substr)\(\s*(?:0,\s*)?-?(?:(?:longest|LONGEST_|MAX_\w*(?:TEXT|LENGTH)|\w*[sS]hare\b)\w*|(?:[3-9]\d|\d{3,}|\d+_\d+))(?:\s*[-+] ?\d+)?\s*\))/g;
/** A digest has no characters to split, and bytes are none. */
const harmless = /digest\('hex'\)|new Uint8Array|\bbytes$/;
/** The function itself, and code that no person wrote. */
const exempt = ['_millrace/errors.ts', '_millrace/engine/database.types.ts'];

/** Each cut of a text in this folder that may split a character, a line each with the remedy; empty when all is well. */
export function textCuts(folder: string): string {
  const files = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const found = files
    .filter((file) => !exempt.includes(file))
    .sort()
    .flatMap((file) => cutsIn(fs.readFileSync(path.join(folder, file), 'utf8')).map((line) => `${file}:${line}`));
  return found.join('\n');
}

function cutsIn(code: string): string[] {
  return [...code.matchAll(cut)]
    .filter(({ index }) => !harmless.test(code.slice(0, index).split('\n').at(-1) ?? ''))
    .map(
      ({ 0: call, index }) =>
        `${code.slice(0, index).split('\n').length}: ${call} may split a character: call excerpt()`,
    );
}
