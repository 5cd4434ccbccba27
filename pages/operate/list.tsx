// Lists that go on: what is asked by the address, page after page.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Fresh, Trouble } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { read } from './api.ts';

interface ListProps<Row> {
  /** The function that answers, such as `runs`. */
  name: string;
  /** Under what it answers the rows. */
  rows: string;
  query: Record<string, unknown>;
  /** Draws the rows; `first` is the newest answer, with what it says beside them, `isEnd` says that no more can follow, and `pages` how many were read. */
  children: (rows: Row[], first: Answer, isEnd: boolean, pages: number) => ComponentChildren;
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
        const found = pages.flatMap((page) => page[rows] as Row[]);
        return (
          <>
            {children(found, first, !next, pages.length)}
            {error.value !== undefined && <Trouble error={error.value} />}
            {next && <Further next={next} isEmpty={found.length === 0} isBusy={isBusy.value} more={more} />}
          </>
        );
      }}
    </Fresh>
  );
}

/** How long a list that has found nothing yet looks further by itself, in milliseconds. */
const looksFurtherMs = 2000;

interface FurtherProps {
  next: string;
  isEmpty: boolean;
  isBusy: boolean;
  more: (cursor: string) => Promise<void>;
}

/** Goes on with a list that does not end here: by itself for two seconds while it is empty, then where somebody asks. */
function Further({ next, isEmpty, isBusy, more }: FurtherProps) {
  const until = useSignal(Date.now() + looksFurtherMs);
  useEffect(() => {
    if (isEmpty && Date.now() < until.value) void more(next);
  }, [next, isEmpty]);
  return (
    <button type="button" disabled={isBusy} onClick={() => more(next)}>
      {isEmpty ? 'Search further' : 'Show older ones'}
    </button>
  );
}

/**
 * Returns the conditions of the address for these fields alone; `numbers` names the fields that are read as numbers.
 */
export function asked(query: URLSearchParams, fields: string[], numbers: string[] = []): Record<string, unknown> {
  const given = [...fields, ...numbers].map((name) => [name, query.get(name)] as const).filter(([, value]) => value);
  return Object.fromEntries(
    given.map(([name, value]) => [name, numbers.includes(name) && /^\d+$/.test(value ?? '') ? Number(value) : value]),
  );
}
