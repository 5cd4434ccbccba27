/**
 * Decides how many items a worker takes. A claim that runs into the database's statement timeout makes the next ones smaller.
 * After a batch that the engine cut at its limit of bytes, the worker holds no more items than it does then: slow handlers would
 * gather batch upon batch in its memory. Each answer lets the next claim grow by one item, and an uncut one also what is held.
 */
export class ClaimSize {
  private atOnce = Infinity;
  private inHand = Infinity;

  /** Returns how many items to claim next, of `capacity` at most in hand, where `inWork` are in hand already. */
  next(capacity: number, inWork: number): number {
    return Math.max(0, Math.min(Math.min(capacity, this.inHand) - inWork, this.atOnce));
  }

  /** A claim of `limit` items timed out; returns how many to try instead. */
  timedOut(limit: number): number {
    this.atOnce = Math.max(1, Math.floor(limit / 2));
    return Math.min(limit, this.atOnce);
  }

  /** Notes an answer, after which `inWork` items are in work. `cut`: whether the engine cut the batch at its most bytes. */
  answered(cut: boolean, inWork: number): void {
    this.atOnce += 1;
    this.inHand = cut ? Math.max(1, inWork) : this.inHand + 1;
  }
}
