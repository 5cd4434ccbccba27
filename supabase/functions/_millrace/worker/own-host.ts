import type { Budget } from './budget.ts';
import { Isolate } from './isolate.ts';

/** How long a process that is to end goes on trying to save what it has finished, while the database does not answer. */
const SAVING_MS = 30_000;

/** A process of one's own, whose CPU and memory no platform limits: no row waits for room, and none is blamed for its end. */
export class OwnHost extends Isolate {
  /** How many rows it has taken so far. */
  rows = 0;

  override room(): number {
    return Number.MAX_SAFE_INTEGER;
  }

  override begin(count: number): void {
    super.begin(count);
    this.rows += count;
  }

  override look(): void {}

  override costReport(): undefined {
    return undefined;
  }
}

/** The budget of a process that has no wall clock: endless, until it is closed. */
export class EndlessBudget implements Budget {
  readonly endsAt = Number.POSITIVE_INFINITY;
  savesUntil = Number.POSITIVE_INFINITY;

  fits(): boolean {
    return true;
  }

  /** Leaves half a minute in which finished rows may still be saved. Each answer of the database begins it anew. */
  close(): void {
    this.savesUntil = Date.now() + SAVING_MS;
  }

  /** Notes that the database has answered: after close(), the time to save begins anew. */
  answered(): void {
    if (this.savesUntil !== Number.POSITIVE_INFINITY) this.close();
  }
}
