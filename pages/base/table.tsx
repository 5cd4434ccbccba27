// Tables of every page: a caption for those who listen. Where a window is narrow each row stands as a list of its values, each
// with its column's name; what is still too wide scrolls by itself.
import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  /** The heading of the column. */
  name: ComponentChildren;
  cell: (row: Row) => ComponentChildren;
  /** Whether it holds numbers, which stand to the right. */
  isNumber?: boolean;
  /** The value by which the rows can be sorted; left out where the table does not have all rows. */
  by?: (row: Row) => number | string | null | undefined;
}

interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  id?: string;
  /** How many rows are drawn before somebody asks for more; left out, all. */
  most?: number;
  /** Shown instead of a table without rows. */
  none?: ComponentChildren;
}

/** Numbers that say that there is nothing; they are drawn softly, so that the others stand out. */
const nothing: ComponentChildren[] = ['0', 0, '$0', '–'];

/** Sorts rows, those without a value last. */
function sorted<Row>(rows: Row[], by: NonNullable<Column<Row>['by']>, isDown: boolean): Row[] {
  const order = (a: Row, b: Row) => {
    const [x, y] = [by(a) ?? null, by(b) ?? null];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    const found = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
    return isDown ? -found : found;
  };
  return [...rows].sort(order);
}

/** A column's heading, by which the rows are sorted where they can be: numbers from the most, names from A. */
function Heading<Row>({ of, place, sort }: { of: Column<Row>; place: number; sort: Signal<Sort | null> }) {
  const { name, isNumber, by } = of;
  const isBy = sort.value?.place === place;
  const sign = !isBy ? '' : sort.value?.isDown ? ' ↓' : ' ↑';
  return (
    <th
      scope="col"
      class={isNumber ? 'number' : undefined}
      aria-sort={isBy ? (sort.value?.isDown ? 'descending' : 'ascending') : undefined}
    >
      {by ? (
        <button
          type="button"
          class="sort"
          onClick={() => {
            sort.value = { place, isDown: isBy ? !sort.value?.isDown : isNumber === true };
          }}
        >
          {name}
          {sign}
        </button>
      ) : (
        name
      )}
    </th>
  );
}

interface Sort {
  place: number;
  isDown: boolean;
}

export function Table<Row>({
  label,
  columns,
  rows: given,
  keyOf,
  id,
  most = Infinity,
  none = 'Nothing.',
}: TableProps<Row>) {
  const sort = useSignal<Sort | null>(null);
  const by = sort.value && columns[sort.value.place]?.by;
  const pages = useSignal(1);
  const all = by && sort.value ? sorted(given, by, sort.value.isDown) : given;
  const rows = all.slice(0, most * pages.value);
  if (rows.length === 0) return <p class="hint">{none}</p>;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <section class="scrolls small" aria-label={label} tabIndex={0}>
        <table id={id}>
          <thead>
            <tr>
              {columns.map((column, place) => (
                <Heading of={column} place={place} sort={sort} key={place} />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={keyOf(row)}>
                {columns.map(({ name, cell, isNumber }, place) => {
                  const shown = cell(row);
                  return (
                    <td
                      class={isNumber ? (nothing.includes(shown) ? 'number none' : 'number') : undefined}
                      data-label={typeof name === 'string' ? name : undefined}
                      key={place}
                    >
                      {shown}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rows.length < all.length && (
        <button
          type="button"
          onClick={() => {
            pages.value += 1;
          }}
        >
          Show more of {all.length}
        </button>
      )}
    </>
  );
}
