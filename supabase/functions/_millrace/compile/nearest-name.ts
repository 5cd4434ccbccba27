/** Returns the known name that a misspelt one is at most two letters away from; undefined where none is so near. */
export function nearestName(given: string, known: string[]): string | undefined {
  const [nearest] = known
    .map((name) => ({ name, far: distance(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, far }) => far > 0 && far <= 2 && far < name.length / 2)
    .sort((one, other) => one.far - other.far);
  return nearest?.name;
}

/** How many letters must be put in, taken out, changed or exchanged with their neighbours to make one name of the other. */
function distance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  const far = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= one.length; row += 1) {
    rows.push([row]);
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1];
      const isTurned = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const ways = [far(row - 1, column) + 1, far(row, column - 1) + 1, far(row - 1, column - 1) + (isSame ? 0 : 1)];
      rows[row]?.push(Math.min(...ways, isTurned ? far(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY));
    }
  }
  return far(one.length, other.length);
}
