const FIRST_REFILL_PAUSE_MS = 250;
const LONGEST_REFILL_PAUSE_MS = 2_000;
const SHORTEST_WAIT_MS = 25;
// A worker waits no longer for a stage at its limits: the sweep wakes another when the stage may go on.
const LONGEST_IDLE_MS = 5_000;
/** After how many empty answers in a row a worker asks less often, whatever the engine says. */
const PATIENT_ANSWERS = 10;
const PATIENT_PAUSE_MS = 500;

/** Decides when a worker asks for more: pauses grow while answers bring nothing, unless the engine names one. */
export class ClaimPace {
  /** Whether the last answer brought nothing, although something was asked for. */
  sawEmpty = false;
  /** Epoch milliseconds from which a worker that has free slots asks again. */
  refillAt = 0;
  private pauseMs = FIRST_REFILL_PAUSE_MS;
  private waitMs: number | null = null;
  private empties = 0;
  private busyAt = Date.now();

  /**
   * Notes the answer to a claim and sets when the worker asks again. A full answer means that more may be queued, so
   * the worker asks again without a pause.
   *
   * `asked`, `got`: items asked for and items received.
   * `waitMs`: in how many milliseconds a stage at its limits may have room again; null: waiting is no use.
   */
  answered(asked: number, got: number, waitMs: number | null | undefined): void {
    const sawEmpty = asked > 0 && got === 0;
    this.sawEmpty = sawEmpty;
    this.pauseMs = sawEmpty ? Math.min(this.pauseMs * 2, LONGEST_REFILL_PAUSE_MS) : FIRST_REFILL_PAUSE_MS;
    this.empties = sawEmpty ? this.empties + 1 : 0;
    const least = this.empties > PATIENT_ANSWERS ? PATIENT_PAUSE_MS : SHORTEST_WAIT_MS;
    this.waitMs = sawEmpty && waitMs != null ? Math.max(waitMs, least) : null;
    this.refillAt = Date.now() + (asked > 0 && got >= asked ? 0 : (this.waitMs ?? this.pauseMs));
  }

  /** Notes that the worker has had items in work until now. */
  wasBusy(): void {
    this.busyAt = Date.now();
  }

  /** Until when an idle worker waits for a stage at its limits, in epoch milliseconds; null when it should leave instead. */
  idleUntil(): number | null {
    if (!this.sawEmpty || this.waitMs === null) return null;
    const until = Date.now() + this.waitMs;
    return until <= this.busyAt + LONGEST_IDLE_MS ? until : null;
  }
}
