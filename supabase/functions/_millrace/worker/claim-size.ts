/**
 * How much a worker takes. Claims get smaller after one that ran into the database's statement timeout, and a worker whose
 * batch had all the bytes that one may have holds no more items than it had then, or slow handlers would gather batch upon
 * batch in its memory. Each answer that brings all that was asked for lets both grow by one item.
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

  /** An answer has come that makes it `held` items in hand; `cut`: its batch has all the bytes that one may have. */
  answered(cut: boolean, held: number): void {
    this.atOnce += 1;
    this.inHand = cut ? Math.max(1, held) : this.inHand + 1;
  }
}
