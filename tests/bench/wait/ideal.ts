/**
 * How long rows take through stages in turn when each row begins a stage as soon as it is through the one before and one of
 * the stage's `places` is free, first come, first served: `pieces[stage][row]`, in any unit, which is that of the result.
 *
 * @example
 * ```ts
 * const seconds = makespan([[1, 2, 3]], 2); // 4
 * ```
 */
export function makespan(pieces: number[][], places: number): number {
  let through = (pieces[0] ?? []).map(() => 0);
  for (const stage of pieces) {
    const free = Array.from({ length: places }, () => 0);
    const byArrival = through.map((at, row) => ({ at, row })).sort((a, b) => a.at - b.at);
    const ends = [...through];
    for (const { at, row } of byArrival) {
      const place = free.indexOf(Math.min(...free));
      free[place] = Math.max(free[place] as number, at) + (stage[row] as number);
      ends[row] = free[place];
    }
    through = ends;
  }
  return Math.max(...through);
}
