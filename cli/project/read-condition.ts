// Reads a jsonpath as Postgres does, so that add, sync and check refuse a condition with a slip before a file is written. No
// database is asked.

/** A predicate is true or false of a row; a value is anything that a path finds. */
type Kind = 'predicate' | 'value';

/** A letter of a name that stands without quotes. */
const letter = String.raw`[^\s?%$.[\]{}()|&!=<>@#,*:\-+/"]`;
const quoted = String.raw`"(?:\\.|[^"\\])*"`;
const number = String.raw`(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?`;
const signs = String.raw`\*\*|&&|\|\||[=!<>]=|<>`;
const tokens = new RegExp(
  String.raw`\s+|/\*[\s\S]*?\*/|\$?${quoted}|\$${letter}+|${number}(?!${letter})|${signs}|${letter}+|[\s\S]`,
  'g',
);
const scalar = new RegExp(String.raw`^(?:\$${letter}*|\$?${quoted}|${number}|true|false|null)$`);
const member = new RegExp(String.raw`^(?:${quoted}|(?!\d)${letter}+)$`);
const compares = ['==', '!=', '<>', '<', '>', '<=', '>='];
const plainMethods = [
  ...['abs', 'bigint', 'boolean', 'ceiling', 'date', 'double', 'floor', 'integer', 'keyvalue', 'number', 'size'],
  ...['string', 'type'],
];
const preciseMethods = ['datetime', 'decimal', 'time', 'time_tz', 'timestamp', 'timestamp_tz'];

/**
 * Reads a condition. Returns what is wrong with it as the end of a sentence, or undefined where it is a predicate.
 *
 * @example
 * ```ts
 * conditionFault('$.needs.triage.urgent = true'); // 'syntax error at or near "="'
 * ```
 */
export function conditionFault(condition: string): string | undefined {
  return pathFault(condition, true);
}

/** Returns what is wrong with any jsonpath. `predicate`: whether it must be true or false of a row. */
export function pathFault(condition: string, predicate: boolean): string | undefined {
  try {
    const kind = new Reader(condition).whole();
    return !predicate || kind === 'predicate' || /^\s*(true|false|null)\s*$/.test(condition)
      ? undefined
      : 'it is neither true nor false: compare what it finds with something, or ask whether there is any by exists()';
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns whether Postgres 17 takes a text as a jsonpath. */
export function isJsonPath(text: string): boolean {
  try {
    new Reader(text).whole();
    return true;
  } catch {
    return false;
  }
}

class Reader {
  readonly #tokens: string[];
  #at = 0;
  /** How many filters and subscripts are around: `@` stands only in the ones, `last` only in the others. */
  #filters = 0;
  #subscripts = 0;

  constructor(text: string) {
    this.#tokens = (text.match(tokens) ?? []).filter((found) => !/^\s|^\/\*/.test(found));
  }

  whole(): Kind {
    if (!this.#take('strict')) this.#take('lax');
    const kind = this.#any();
    if (this.#next !== undefined) throw this.#fault();
    return kind;
  }

  get #next(): string | undefined {
    return this.#tokens[this.#at];
  }

  #fault(): Error {
    return new Error(
      this.#next === undefined ? 'it ends too soon' : `syntax error at or near ${JSON.stringify(this.#next)}`,
    );
  }

  /** Goes on where the next token is this one. Words may be written in capitals. */
  #take(wanted: string): boolean {
    if (this.#next?.toLowerCase() !== wanted) return false;
    this.#at += 1;
    return true;
  }

  #expect(wanted: string): void {
    if (!this.#take(wanted)) throw this.#fault();
  }

  #require(kind: Kind, wanted: Kind): void {
    if (kind !== wanted) throw this.#fault();
  }

  #any(): Kind {
    return this.#joined('||', () => this.#joined('&&', () => this.#compared()));
  }

  #joined(sign: string, part: () => Kind): Kind {
    const kind = part();
    while (this.#next === sign) {
      this.#require(kind, 'predicate');
      this.#expect(sign);
      this.#require(part(), 'predicate');
    }
    return kind;
  }

  #compared(): Kind {
    if (this.#take('!')) {
      if (!this.#exists()) this.#require(this.#bracketed(), 'predicate');
      return 'predicate';
    }
    const kind = this.#sum();
    if (kind === 'predicate') return kind;
    const sign = compares.find((compare) => this.#take(compare));
    if (sign) {
      this.#require(this.#sum(), 'value');
      return 'predicate';
    }
    if (this.#take('starts')) {
      this.#expect('with');
      if (!/^["$]./.test(this.#next ?? '')) throw this.#fault();
      this.#at += 1;
      return 'predicate';
    }
    if (!this.#take('like_regex')) return kind;
    this.#text();
    if (this.#take('flag')) this.#text(/^"[ismq]*"$/);
    return 'predicate';
  }

  #text(shape = /^"[\s\S]*"$/): void {
    if (this.#next === '"' || !shape.test(this.#next ?? '')) throw this.#fault();
    this.#at += 1;
  }

  #sum(): Kind {
    const signs = ['+', '-', '*', '/', '%'];
    const signed = ['+', '-'].some((sign) => this.#take(sign));
    const kind = signed ? this.#sum() : this.#primary();
    if (signed) this.#require(kind, 'value');
    while (kind === 'value' && signs.some((sign) => this.#take(sign))) this.#require(this.#sum(), 'value');
    return kind;
  }

  #primary(): Kind {
    if (this.#exists()) return 'predicate';
    let kind: Kind = 'value';
    if (this.#next === '(') kind = this.#bracketed();
    else this.#start();
    if (kind === 'predicate' && this.#take('is')) {
      this.#expect('unknown');
      return kind;
    }
    while (this.#accessor()) kind = 'value';
    return kind;
  }

  #bracketed(): Kind {
    this.#expect('(');
    const kind = this.#any();
    this.#expect(')');
    return kind;
  }

  #exists(): boolean {
    if (this.#next?.toLowerCase() !== 'exists') return false;
    this.#at += 1;
    this.#require(this.#bracketed(), 'value');
    return true;
  }

  #start(): void {
    const found = this.#next ?? '';
    const isLast = found.toLowerCase() === 'last' && this.#subscripts > 0;
    const isHere = found === '@' && this.#filters > 0;
    if (!(isLast || isHere || scalar.test(found))) throw this.#fault();
    this.#at += 1;
  }

  #accessor(): boolean {
    if (this.#take('?')) {
      this.#expect('(');
      this.#filters += 1;
      this.#require(this.#any(), 'predicate');
      this.#filters -= 1;
      this.#expect(')');
      return true;
    }
    if (this.#take('[')) {
      if (!this.#take('*')) this.#subscript();
      this.#expect(']');
      return true;
    }
    if (!this.#take('.')) return false;
    if (this.#take('*')) return true;
    if (this.#take('**')) this.#levels();
    else this.#member();
    return true;
  }

  #subscript(): void {
    this.#subscripts += 1;
    do {
      this.#require(this.#any(), 'value');
      if (this.#take('to')) this.#require(this.#any(), 'value');
    } while (this.#take(','));
    this.#subscripts -= 1;
  }

  #levels(): void {
    if (!this.#take('{')) return;
    const level = () => {
      if (this.#take('last')) return;
      if (!/^\d+$/.test(this.#next ?? '')) throw this.#fault();
      this.#at += 1;
    };
    level();
    if (this.#take('to')) level();
    this.#expect('}');
  }

  /** A name behind a point, or a method with its brackets. */
  #member(): void {
    const name = this.#next ?? '';
    if (!member.test(name)) throw this.#fault();
    this.#at += 1;
    if (this.#next !== '(' || name.startsWith('"')) return;
    const takes = preciseMethods.includes(name.toLowerCase());
    if (!takes && !plainMethods.includes(name.toLowerCase())) throw this.#fault();
    this.#at += 1;
    while (takes && /^(?:["\d].*|,|-|\+)$/.test(this.#next ?? '')) this.#at += 1;
    this.#expect(')');
  }
}
