// The journal: who did what, when, why and to how many.

import type { JournalEntry } from '../../operators/answers.ts';
import { count } from '../../operators/numbers.ts';
import { Moment } from '../base/format.tsx';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { Filter } from './filter.tsx';
import { asked, List } from './list.tsx';

export function Journal(route: Route) {
  const query = asked(route.query, ['pipeline', 'verb', 'by'], ['run', 'bulk']);
  return (
    <>
      <Filter
        route={route}
        fields={[
          { name: 'pipeline', label: 'Pipeline' },
          { name: 'verb', label: 'Action' },
          { name: 'by', label: 'Author' },
        ]}
      />
      <List<JournalEntry> key={JSON.stringify(query)} name="journal" rows="entries" query={query}>
        {(entries) => <JournalEntries entries={entries} />}
      </List>
    </>
  );
}

/** Lines of the journal. */
export function JournalEntries({ entries }: { entries: JournalEntry[] }) {
  return (
    <Table
      label="Journal"
      rows={entries}
      keyOf={({ journal_entry }) => journal_entry}
      none="No journal entry."
      columns={[
        { name: 'Time', cell: (l) => <Moment at={l.at} /> },
        { name: 'Author', cell: (l) => <Words text={l.by} most={60} /> },
        { name: 'Action', cell: (l) => <Words text={l.verb} most={40} /> },
        { name: 'Target', cell: (l) => <Words text={placeOf(l)} most={120} /> },
        { name: 'Runs', cell: (l) => <Touched entry={l} /> },
        { name: 'Reason', cell: (l) => <Words text={l.reason} most={300} /> },
      ]}
    />
  );
}

/** Where it was done: at a stage, a pipeline, or what the outcome names. */
function placeOf({ pipeline, stage, outcome }: JournalEntry): string {
  if (pipeline) return [pipeline, stage].filter(Boolean).join('.');
  const { limit, subject, role, channel } = (outcome ?? {}) as Record<string, string | undefined>;
  if (subject) return role ? `${subject}, ${role}` : subject;
  return limit ?? channel ?? '';
}

function Touched({ entry: { run_ids: runs = [], runs: many = 0, bulk } }: { entry: JournalEntry }) {
  if (bulk) {
    return (
      <>
        {many > 0 && `${count(many)} by `}
        <a href={to('bulk', bulk)}>bulk {bulk}</a>
      </>
    );
  }
  if (many === 1) return <a href={to('run', runs[0])}>run {runs[0]}</a>;
  return <>{many > 0 && count(many)}</>;
}
