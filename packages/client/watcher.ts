// A supabase client has one watcher. The watcher asks for all its rows by one call: at once after a message, else at growing
// intervals.
import type { RealtimeChannel, SupabaseClient } from '@supabase/supabase-js';
import { type Progress, ProgressError } from './progress.ts';

export interface Listener {
  onChange(progress: Progress): void;
  onError(error: ProgressError): void;
}

interface Row {
  pipeline: string;
  key: string;
  listeners: Set<Listener>;
  version: string | null;
  progress?: Progress;
  /** When it is to be asked for (`never`: it was refused), and after which pause again, in milliseconds. */
  at: number;
  pause: number;
  /** True once a message has come since the row was last asked for. */
  isStale: boolean;
}

interface Answer {
  topic: string | null;
  rows: {
    pipeline: string;
    key: string;
    version: string | null;
    progress: Pick<Progress, 'run' | 'stages'> | null;
    expected_end: string | null;
  }[];
}

const mostRows = 500;
/** A lease lasts 60 s. */
const longestPauseMs = 25_000;
const longestPollMs = 10_000;
const firstPauseMs = 500;
const longestBackoffMs = 30_000;
/** Rows that are due so soon are asked for together. */
const togetherMs = 50;
const never = Number.POSITIVE_INFINITY;

const watchers = new WeakMap<SupabaseClient, Watcher>();

/** Returns the watcher of a client, which all its rows share. */
export function watcherOf(supabase: SupabaseClient): Watcher {
  const watcher = watchers.get(supabase) ?? new Watcher(supabase);
  watchers.set(supabase, watcher);
  return watcher;
}

export class Watcher {
  readonly #supabase: SupabaseClient;
  readonly #rows = new Map<string, Row>();
  /** Names the private topic, so nobody else may guess it. */
  readonly #id = [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, '0')).join('');
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopListening = () => {};
  #isAsking = false;
  #failures = 0;
  #topic: string | null = null;
  #channel: RealtimeChannel | undefined;
  #isLive = false;
  #rejoinAt = 0;
  #refusals = 0;

  constructor(supabase: SupabaseClient) {
    this.#supabase = supabase;
  }

  /** Watches a row until the returned function is called. Throws where 500 others are watched. */
  watch(pipeline: string, key: string, listener: Listener): () => void {
    const id = JSON.stringify([pipeline, key]);
    const row = this.#rows.get(id) ?? this.#add(id, pipeline, key);
    row.listeners.add(listener);
    if (row.progress) listener.onChange(row.progress);
    else if (row.at === never) {
      askSoon(row);
      this.#plan();
    }
    return () => {
      row.listeners.delete(listener);
      // Another component may watch the row in the same tick: the progress and the channel stay for it.
      if (row.listeners.size === 0) queueMicrotask(() => this.#prune());
    };
  }

  /** Drops the rows that nobody watches. */
  #prune(): void {
    for (const [id, row] of this.#rows) if (row.listeners.size === 0) this.#rows.delete(id);
    if (this.#rows.size === 0) this.#stop();
    else if (this.#isIdle()) this.#leave();
  }

  /** Returns whether all rows are refused. */
  #isIdle(): boolean {
    return [...this.#rows.values()].every(({ at }) => at === never);
  }

  #add(id: string, pipeline: string, key: string): Row {
    if (this.#rows.size >= mostRows) this.#prune();
    if (this.#rows.size >= mostRows)
      throw new ProgressError(
        'too_many_rows',
        `A client watches at most ${mostRows} rows: watch those that a person sees.`,
      );
    const row: Row = {
      pipeline,
      key,
      listeners: new Set(),
      version: null,
      at: Date.now(),
      pause: firstPauseMs,
      isStale: false,
    };
    if (this.#rows.size === 0) this.#listen();
    this.#rows.set(id, row);
    this.#plan();
    return row;
  }

  #listen(): void {
    globalThis.document?.addEventListener('visibilitychange', this.#askAll);
    globalThis.window?.addEventListener('online', this.#askAll);
    try {
      const { data } = this.#supabase.auth.onAuthStateChange((event) => {
        // The user may see rows that were refused before.
        if (event === 'SIGNED_IN') this.#askFor(() => true);
      });
      this.#stopListening = () => data.subscription.unsubscribe();
    } catch {
      // A client with the option accessToken throws where its auth is read.
    }
  }

  #stop(): void {
    clearTimeout(this.#timer);
    globalThis.document?.removeEventListener('visibilitychange', this.#askAll);
    globalThis.window?.removeEventListener('online', this.#askAll);
    this.#stopListening();
    this.#leave();
  }

  /** Asks for all rows but refused ones now: the page was hidden or offline, or no messages have come so far. */
  readonly #askAll = (): void => this.#askFor(({ at }) => at !== never);

  #askFor(isWanted: (row: Row) => boolean): void {
    this.#failures = 0;
    for (const row of [...this.#rows.values()].filter(isWanted)) askSoon(row);
    this.#plan();
  }

  /** Sets the timer to the row that is due first. */
  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#isAsking || this.#isIdle()) return;
    const next = Math.min(...[...this.#rows.values()].map(({ at }) => at));
    this.#timer = setTimeout(() => this.#askDue(), Math.max(next - Date.now(), 0));
  }

  async #askDue(): Promise<void> {
    this.#isAsking = true;
    const soon = Date.now() + togetherMs;
    try {
      await this.#ask([...this.#rows.values()].filter(({ at }) => at <= soon));
    } finally {
      // A listener may throw: the page's own error must not end the other watches.
      this.#isAsking = false;
      this.#plan();
    }
  }

  async #ask(rows: Row[]): Promise<void> {
    const versions: Record<string, Record<string, string | null>> = {};
    for (const row of rows) {
      row.isStale = false;
      versions[row.pipeline] = { ...versions[row.pipeline], [row.key]: row.version };
    }
    const { data, error, status } = await this.#supabase.rpc('millrace_progress', {
      p_rows: versions,
      p_client: this.#id,
    });
    if (!error) {
      this.#failures = 0;
      this.#take(rows, data as Answer);
    } else if (![400, 403, 404].includes(status) && error.code !== '42501') {
      // The network or the server failed, or the token is being refreshed: asks again later. A missing
      // grant (42501) is refused for good, though its status is 401 for callers without a token.
      const pause = Math.min(1000 * 2 ** this.#failures, longestBackoffMs);
      this.#failures += 1;
      for (const row of rows) row.at = Date.now() + pause;
    } else if (rows.length > 1) {
      // A row that is refused must not take the others with it.
      const half = rows.length >> 1;
      await this.#ask(rows.slice(0, half));
      await this.#ask(rows.slice(half));
    } else if (rows[0]) this.#refuse(rows[0], new ProgressError(error.code, error.message));
  }

  #refuse(row: Row, error: ProgressError): void {
    row.progress = undefined;
    row.version = null;
    if (row.isStale) {
      // A message has come, or the user has signed in, since the row was asked for.
      askSoon(row);
      return;
    }
    row.at = never;
    if (this.#isIdle()) this.#leave();
    for (const listener of row.listeners) listener.onError(error);
  }

  #take(rows: Row[], { topic, rows: changed }: Answer): void {
    const now = Date.now();
    for (const row of rows) {
      row.pause = Math.min(row.pause * 2, this.#isLive ? longestPauseMs : longestPollMs);
      const answer = changed.find(({ pipeline, key }) => pipeline === row.pipeline && key === row.key);
      if (answer) {
        row.pause = firstPauseMs;
        row.version = answer.version ?? '';
      }
      row.at = row.isStale ? now : now + row.pause;
      if (answer) this.#report(row, answer);
    }
    if (this.#isIdle()) return;
    if (this.#topic !== topic) this.#leave();
    if (topic && !this.#channel && now >= this.#rejoinAt) this.#join(topic).catch(() => this.#lose());
  }

  #report(row: Row, { progress, expected_end }: Answer['rows'][number]): void {
    if (!progress && !row.progress) {
      this.#refuse(row, new ProgressError('not_found', `You may see no row ${row.key} of ${row.pipeline}.`));
      return;
    }
    row.progress = progress
      ? {
          ...progress,
          done: progress.run !== null && progress.run.status !== 'running',
          deleted: false,
          expectedEnd: expected_end,
        }
      : { ...(row.progress as Progress), done: true, deleted: true, expectedEnd: null };
    for (const listener of row.listeners) listener.onChange(row.progress);
  }

  async #join(topic: string): Promise<void> {
    const channel = this.#supabase.channel(topic, { config: { private: true } });
    this.#channel = channel;
    this.#topic = topic;
    channel.on('broadcast', { event: 'progress' }, ({ payload }) => this.#receive(payload));
    await this.#supabase.realtime.setAuth();
    if (this.#channel !== channel) return;
    channel.subscribe((status) => {
      if (this.#channel !== channel) return;
      if (status !== 'SUBSCRIBED') return this.#lose();
      this.#isLive = true;
      this.#refusals = 0;
      this.#askAll();
    });
  }

  /** Polls until the channel can be joined again: its token has expired, the connection is lost, or nobody lets it in. */
  #lose(): void {
    this.#leave();
    this.#rejoinAt = Date.now() + Math.min(1000 * 2 ** this.#refusals, longestBackoffMs);
    this.#refusals += 1;
    this.#askAll();
  }

  #leave(): void {
    const channel = this.#channel;
    this.#channel = undefined;
    this.#topic = null;
    this.#isLive = false;
    if (channel) this.#supabase.removeChannel(channel).catch(() => {});
  }

  #receive({ pipeline, keys }: { pipeline: string; keys: string[] }): void {
    for (const row of this.#rows.values()) if (row.pipeline === pipeline && keys.includes(row.key)) askSoon(row);
    this.#plan();
  }
}

function askSoon(row: Row): void {
  row.at = Date.now();
  row.pause = firstPauseMs;
  row.isStale = true;
}
