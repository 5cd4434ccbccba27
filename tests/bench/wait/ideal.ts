/** How long the pieces take when each begins, in their order, as soon as one of `places` is free; in the unit of the pieces. */
export function listSchedule(pieces: number[], places: number): number {
  const free = Array.from({ length: places }, () => 0);
  for (const piece of pieces) {
    const next = free.indexOf(Math.min(...free));
    free[next] = (free[next] as number) + piece;
  }
  return Math.max(...free);
}
