// Lists that go on: what is asked by the address, page after page.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Fresh, Trouble } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { read } from './door.ts';

interface ListProps<Row> {
  /** The function that answers, such as `runs`. */
  name: string;
  /** Under what it answers the rows. */
  rows: string;
  query: Record<string, unknown>;
  /** Draws the rows; `first` is the newest answer, with what it says beside them. */
  children: (rows: Row[], first: Answer) => ComponentChildren;
}

type Answer = { next: string | null } & Record<string, unknown>;

/** The newest rows, asked again and again, and older ones where somebody asks for more. */
export function List<Row>({ name, rows, query, children }: ListProps<Row>) {
  const newest = usePoll(`${name} ${JSON.stringify(query)}`, () => read<Answer>(name, query));
  const older = useSignal<Answer[]>([]);
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  async function more(cursor: string): Promise<void> {
    isBusy.value = true;
    error.value = undefined;
    try {
      older.value = [...older.value, await read<Answer>(name, { ...query, cursor })];
    } catch (refusal) {
      error.value = refusal;
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <Fresh of={newest.value}>
      {(first) => {
        const pages = [first, ...older.value];
        const next = pages.at(-1)?.next;
        return (
          <>
            {children(
              pages.flatMap((page) => page[rows] as Row[]),
              first,
            )}
            {error.value !== undefined && <Trouble error={error.value} />}
            {next && (
              <button type="button" disabled={isBusy.value} onClick={() => more(next)}>
                Show older ones
              </button>
            )}
          </>
        );
      }}
    </Fresh>
  );
}

/** What the address asks for, of these fields alone; a number where one is meant. */
export function asked(query: URLSearchParams, fields: string[], numbers: string[] = []): Record<string, unknown> {
  const given = [...fields, ...numbers].map((name) => [name, query.get(name)] as const).filter(([, value]) => value);
  return Object.fromEntries(
    given.map(([name, value]) => [name, numbers.includes(name) && /^\d+$/.test(value ?? '') ? Number(value) : value]),
  );
}
