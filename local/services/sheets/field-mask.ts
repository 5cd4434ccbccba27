/** A mask of the API, by the fields that it keeps: null keeps all of a field, a mask keeps parts of it. */
export type FieldMask = Map<string, FieldMask | null>;

/** Reads a mask such as `sheets(properties/title,data.rowData)`. Throws an Error where it is none. */
export function readFieldMask(text: string): FieldMask {
  const reader = new MaskReader(text.replaceAll(/\s/g, ''));
  return reader.read();
}

class MaskReader {
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  read(): FieldMask {
    const mask = this.#list();
    if (this.#at < this.#text.length) throw new Error(`Invalid field selection ${this.#text.slice(this.#at)}`);
    return mask;
  }

  #list(): FieldMask {
    const mask: FieldMask = new Map();
    do {
      const [name, inner] = this.#item();
      const former = mask.get(name);
      mask.set(name, former && inner ? new Map([...former, ...inner]) : inner);
    } while (this.#takes(','));
    return mask;
  }

  #item(): [string, FieldMask | null] {
    const name = /^[\w*]+/.exec(this.#text.slice(this.#at))?.[0];
    if (name === undefined) throw new Error(`Invalid field selection ${this.#text.slice(this.#at)}`);
    this.#at += name.length;
    if (this.#takes('/') || this.#takes('.')) return [name, new Map([this.#item()])];
    if (!this.#takes('(')) return [name, null];
    const inner = this.#list();
    if (!this.#takes(')')) throw new Error('Invalid field selection: a bracket is open');
    return [name, inner];
  }

  #takes(mark: string): boolean {
    if (this.#text[this.#at] !== mark) return false;
    this.#at++;
    return true;
  }
}

/** Returns the value with nothing but what the mask keeps; lists are masked item by item. */
export function masked(value: unknown, mask: FieldMask | null): unknown {
  if (mask === null || mask.has('*')) return value;
  if (Array.isArray(value)) return value.map((item) => masked(item, mask));
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => mask.has(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, masked(inner, mask.get(name) ?? null)]));
}
