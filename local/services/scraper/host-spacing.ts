import { setTimeout as pause } from 'node:timers/promises';

/** A random wait between two bounds, in milliseconds. */
export interface Spacing {
  min: number;
  max: number;
}

const mostHosts = 10_000;

/** Keeps the pages of one host apart, whichever jobs ask for them. */
export class HostSpacing {
  /** When the next page of a host may be asked for. */
  readonly #free = new Map<string, number>();

  /** Waits for a host's turn, and makes the next one wait for a random time after it. */
  async turn(host: string, { min, max }: Spacing, signal: AbortSignal): Promise<void> {
    const now = Date.now();
    const at = Math.max(now, this.#free.get(host) ?? 0);
    if (this.#free.size >= mostHosts) this.#forget(now);
    this.#free.set(host, at + min + Math.random() * Math.max(0, max - min));
    if (at > now) await pause(at - now, undefined, { signal, ref: false });
  }

  #forget(now: number): void {
    for (const [host, at] of this.#free) if (at <= now) this.#free.delete(host);
  }
}
