import { excerpt } from '../errors.ts';
import type { Level } from '../log-lines.ts';
import type { Env } from '../settings.ts';

const MOST_LINES = 50;
const MOST_BYTES = 4_096;
/** Characters of one line, so that no single line pushes out all others. */
const LONGEST_LINE = 1_000;
/** Characters of a line that are searched for secrets. */
const LONGEST_MASKED = 10_000;
/** Control characters and the sequences of colours, which a terminal or a page would obey. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is replaced
const controls = /\u001b\[[0-9;]*[A-Za-z]|[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
const secretName = /KEY|TOKEN|SECRET|PASSWORD|_DB_URL|DATABASE_URL|DSN|CREDENTIAL/i;
/** A shorter value may be a word of any text. */
const SHORTEST_SECRET = 8;

/** The secrets of an environment, which is the same for all attempts of an isolate. */
const known = new WeakMap<Env, string[]>();

function secretsOf(env: Env): string[] {
  const found =
    known.get(env) ??
    Object.entries(env).flatMap(([name, value]) =>
      secretName.test(name) && value && value.length >= SHORTEST_SECRET ? [value] : [],
    );
  known.set(env, found);
  return found;
}

/** The last lines that a handler wrote to its log: at most 50, in at most 4 kB, without control characters and settings' secrets. */
export class LastLines {
  #lines: string[] = [];
  #count = 0;

  constructor(private readonly env: Env) {}

  add(level: Level, message: string, line: string): void {
    const text = `${new Date().toISOString().slice(11, 23)} ${level} ${message}${line === '{}' ? '' : ` ${line}`}`;
    this.#count += 1;
    this.#lines.push(excerpt(this.#masked(excerpt(text, LONGEST_MASKED)).replaceAll(controls, ' '), LONGEST_LINE));
    if (this.#lines.length > MOST_LINES) this.#lines.shift();
  }

  /** Returns the lines, the oldest first, after a line that counts those left out; undefined without any. */
  text(): string | undefined {
    if (this.#count === 0) return undefined;
    const encoder = new TextEncoder();
    // The count of what is left out has a line of its own.
    let room = MOST_BYTES - 60;
    const fits = this.#lines.findLastIndex((line) => {
      room -= encoder.encode(line).length + 1;
      return room < 0;
    });
    const kept = this.#lines.slice(fits + 1);
    const missing = this.#count - kept.length;
    const told = missing === 1 ? '… 1 line before is not kept' : `… ${missing} lines before are not kept`;
    return (missing > 0 ? [told, ...kept] : kept).join('\n');
  }

  #masked(text: string): string {
    return secretsOf(this.env).reduce((masked, secret) => masked.replaceAll(secret, '•••'), text);
  }
}
