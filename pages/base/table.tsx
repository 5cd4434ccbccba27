// Tables of every page: a caption for those who listen. Where a window is narrow each row stands as a list of its values, each
// with its column's name; what is still too wide scrolls by itself.
import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  /** The heading of the column. */
  name: ComponentChildren;
  cell: (row: Row) => ComponentChildren;
  /** Whether it holds numbers, which stand to the right. */
  isNumber?: boolean;
}

interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  id?: string;
  /** Shown instead of a table without rows. */
  none?: ComponentChildren;
}

export function Table<Row>({ label, columns, rows, keyOf, id, none = 'Nothing.' }: TableProps<Row>) {
  if (rows.length === 0) return <p class="hint">{none}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="scrolls small" aria-label={label} tabIndex={0}>
      <table id={id}>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }, place) => (
              <th scope="col" class={isNumber ? 'number' : undefined} key={place}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, cell, isNumber }, place) => (
                <td
                  class={isNumber ? 'number' : undefined}
                  data-label={typeof name === 'string' ? name : undefined}
                  key={place}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
