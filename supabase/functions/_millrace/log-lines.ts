import { excerpt } from './errors.ts';
// Lines on their way to the function's log. Supabase keeps 100 events of a function in ten seconds, of 10,000 characters each,
// and drops the rest without a word; two hundred rows at once have more to say.
export type Level = 'info' | 'warn' | 'error';

const WINDOW_MS = 10_000;
/** How many events are written in ten seconds: ten are left to what a handler itself writes to the console. */
const MOST_EVENTS = 90;
/** How many lines of ten seconds get an event each; later lines share events. */
const SINGLE_EVENTS = 50;
const BUNDLE_MS = 1_000;
/** Characters of an event. */
const LONGEST_EVENT = 9_900;
const levels: Level[] = ['info', 'warn', 'error'];

/**
 * Writes lines one an event, or several an event where they come thick and fast. Lines beyond what the platform keeps are left out
 * and counted, and the count is written as soon as there is room.
 */
export class LogLines {
  /** When the events of the last ten seconds were written. */
  #written: number[] = [];
  #pending: string[] = [];
  #pendingLength = 0;
  #pendingLevel: Level = 'info';
  #leftOut = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Takes a line, which is of one event's length at most. */
  add(level: Level, line: string): void {
    this.#tellLeftOut();
    if (this.#pending.length === 0 && this.#room() > MOST_EVENTS - SINGLE_EVENTS) {
      this.#write(level, line);
      return;
    }
    if (this.#pendingLength + line.length > LONGEST_EVENT && !this.flush()) {
      this.#leftOut += 1;
      return;
    }
    this.#pending.push(line);
    this.#pendingLength += line.length + 1;
    this.#pendingLevel = levels[Math.max(levels.indexOf(level), levels.indexOf(this.#pendingLevel))] ?? level;
    this.#flushLater();
  }

  /** Writes the pending lines as one event. Returns false where the platform would drop it. */
  flush(): boolean {
    this.#tellLeftOut();
    if (this.#pending.length === 0) return true;
    if (this.#room() === 0) return false;
    const [lines, level] = [this.#pending, this.#pendingLevel];
    this.#pending = [];
    this.#pendingLength = 0;
    this.#pendingLevel = 'info';
    this.#write(level, lines.join('\n'));
    return true;
  }

  #tellLeftOut(): void {
    if (this.#leftOut === 0 || this.#room() === 0) return;
    const left_out = this.#leftOut;
    this.#leftOut = 0;
    const lines = left_out === 1 ? '1 line of the log was' : `${left_out} lines of the log were`;
    const message = `${lines} left out: the platform keeps ${MOST_EVENTS + 10} events in ten seconds`;
    this.#write('warn', JSON.stringify({ level: 'warn', message, left_out }));
  }

  #flushLater(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.flush() || this.#leftOut > 0) this.#flushLater();
    }, BUNDLE_MS);
    // The timer must not keep a process alive that has nothing else to do.
    (this.#timer as { unref?(): void }).unref?.();
  }

  /** Returns how many events the platform would keep now. */
  #room(): number {
    const now = Date.now();
    this.#written = this.#written.filter((at) => at <= now && at > now - WINDOW_MS);
    return MOST_EVENTS - this.#written.length;
  }

  #write(level: Level, text: string): void {
    this.#written.push(Date.now());
    if (level === 'info') console.log(text);
    else console[level](text);
  }
}

/** Writes an event as a line of JSON. Of a line that is longer than the platform keeps, it tells the beginning and how much is missing. */
export function lineOf(event: { level: Level; message: string }, base: object, fields: object): string {
  const line = toJson({ ...event, ...base, ...fields });
  if (line.length <= LONGEST_EVENT) return line;
  const short = { level: event.level, message: excerpt(event.message, 1000), ...base };
  const beginning = excerpt(toJson({ ...event, ...fields }), 4000);
  const cut = toJson({ ...short, cut: beginning, left_out_characters: line.length - beginning.length });
  return cut.length <= LONGEST_EVENT ? cut : `${excerpt(cut, LONGEST_EVENT - 1)}…`;
}

/** Replaces a value that JSON cannot hold by its description: a line of the log fails no attempt. */
export function toJson(value: object): string {
  try {
    return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
  } catch (error) {
    const plain = Object.entries(value).filter(([, part]) => typeof part !== 'object' || part === null);
    const texts = plain.map(([name, part]) => [name, typeof part === 'bigint' ? String(part) : part]);
    return JSON.stringify({
      ...Object.fromEntries(texts),
      left_out: excerpt(`fields that are no JSON: ${error}`, 300),
    });
  }
}
