/**
 * Decides how many items a worker takes. A claim that runs into the database's statement timeout makes the next ones smaller.
 * A batch that the engine cut at its most bytes bounds what the worker holds, or slow handlers would gather batch upon batch in
 * its memory. Each answer that brings all that was asked for lets both bounds grow by one item.
 */
export class ClaimSize {
  private atOnce = Infinity;
  private inHand = Infinity;

  /** How many items to claim next, of `capacity` at most in hand, where `held` are in hand already. */
  next(capacity: number, held: number): number {
    return Math.max(0, Math.min(Math.min(capacity, this.inHand) - held, this.atOnce));
  }

  /** A claim of `limit` items timed out; returns how many to try instead. */
  timedOut(limit: number): number {
    this.atOnce = Math.max(1, Math.floor(limit / 2));
    return Math.min(limit, this.atOnce);
  }

  /** An answer has come, and the worker holds `held` items. `cut`: the engine cut the batch at its most bytes. */
  answered(cut: boolean, held: number): void {
    this.atOnce += 1;
    this.inHand = cut ? Math.max(1, held) : this.inHand + 1;
  }
}
