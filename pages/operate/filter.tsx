// The filter above a list: what it holds goes into the address.
import type { DeadGroup, Overview } from '../../operators/answers.ts';
import { usePoll } from '../base/poll.ts';
import { ask, type Query, type Route } from '../base/route.ts';
import { read } from './api.ts';
import { OtherConditions, SavedFilters } from './saved-filters.tsx';

export interface FilterField {
  name: string;
  label: string;
  /** The values to choose from; left out, the field takes any text. */
  choices?: string[];
  /** The label of the empty choice; left out, `any`. */
  none?: string;
  /** Returns what goes into the address instead of a value that is chosen; left out, the value under the name. */
  into?: (value: string) => Query;
}

/** The pipelines, the stages of the one that is chosen, and the codes of dead letters, for the fields of these names. */
async function askSuggestions(chosen: string | null): Promise<Record<string, string[]>> {
  const [{ pipelines, stages }, { groups }] = await Promise.all([
    read<Overview>('overview', { quiet: true }),
    read<{ groups: DeadGroup[] }>('dead_letters'),
  ]);
  const here = <Of extends { pipeline: string }>(all: Of[]) =>
    all.filter(({ pipeline }) => !chosen || pipeline === chosen);
  return {
    pipeline: pipelines.map(({ pipeline }) => pipeline),
    stage: [...new Set(here(stages).map(({ stage }) => stage))],
    error_code: [...new Set(here(groups).map(({ error_code }) => error_code))],
  };
}

/** A form with these fields; empty fields do not filter. */
export function Filter({ fields, route }: { fields: FilterField[]; route: Route }) {
  const chosen = route.query.get('pipeline');
  const suggested = usePoll(`suggestions ${chosen}`, () => askSuggestions(chosen), 300_000).value.answer ?? {};
  return (
    <>
      <form
        class="filter"
        // Begins anew with each address.
        key={route.query.toString()}
        aria-label="Filter"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const changes = fields.map(({ name, into }): Query => {
            const value = String(form.get(name) ?? '').trim();
            return into ? (value ? into(value) : {}) : { [name]: value };
          });
          ask(Object.assign({}, ...changes));
        }}
      >
        {fields.map(({ name, label, choices, none = 'any' }) => (
          <div key={name}>
            <label for={`filter-${name}`}>{label}</label>
            {choices ? (
              <select id={`filter-${name}`} name={name}>
                <option value="">{none}</option>
                {choices.map((choice) => (
                  <option key={choice} selected={choice === route.query.get(name)}>
                    {choice}
                  </option>
                ))}
              </select>
            ) : (
              <input
                id={`filter-${name}`}
                name={name}
                autocomplete="off"
                spellcheck={false}
                list={suggested[name] && `suggested-${name}`}
                defaultValue={route.query.get(name) ?? ''}
              />
            )}
            <datalist id={`suggested-${name}`}>
              {suggested[name]?.slice(0, 200).map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          </div>
        ))}
        <button type="submit">Show</button>
      </form>
      <OtherConditions route={route} shown={['range', ...fields.map(({ name }) => name)]} />
      <SavedFilters route={route} />
    </>
  );
}
