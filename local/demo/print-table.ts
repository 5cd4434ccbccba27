import pc from 'picocolors';

/** A column: its title, and whether its cells are numbers, which stand to the right. */
export type TableColumn = [title: string, side?: 'left' | 'right'];

/** Prints rows below the columns' titles, each column as wide as its widest cell. */
export function printTable(columns: TableColumn[], rows: string[][], print: (line: string) => void): void {
  const widths = columns.map(([title], at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? '').length)));
  const line = (cells: string[]) =>
    cells
      .map((cell, at) => {
        const width = widths[at] ?? 0;
        return columns[at]?.[1] === 'right' ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  print(`  ${pc.dim(line(columns.map(([title]) => title)))}`);
  for (const row of rows) print(`  ${line(row)}`);
}
