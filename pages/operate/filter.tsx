// The filter above a list: what it holds goes into the address.
import { ask, type Route } from '../base/route.ts';
import { OtherConditions, SavedFilters } from './saved-filters.tsx';

export interface FilterField {
  name: string;
  label: string;
  /** The values to choose from; left out, the field takes any text. */
  choices?: string[];
  /** The label of the empty choice; left out, `any`. */
  none?: string;
}

/** A form with these fields; empty fields do not filter. */
export function Filter({ fields, route }: { fields: FilterField[]; route: Route }) {
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
          ask(Object.fromEntries(fields.map(({ name }) => [name, String(form.get(name) ?? '').trim()])));
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
                defaultValue={route.query.get(name) ?? ''}
              />
            )}
          </div>
        ))}
        <button type="submit">Show</button>
      </form>
      <OtherConditions route={route} shown={fields.map(({ name }) => name)} />
      <SavedFilters route={route} />
    </>
  );
}
