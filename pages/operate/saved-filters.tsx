// Filters that somebody keeps in this browser, by screen, and what an address asks for beside the fields of its filter.
import { signal } from '@preact/signals';
import { closeDialog, Dialog, openDialog } from '../base/dialog.tsx';
import { Moment } from '../base/format.tsx';
import { say } from '../base/messages.tsx';
import { ask, type Route, to } from '../base/route.ts';
import { readStored, writeStored } from '../base/stored.ts';
import { Words } from '../base/words.tsx';

interface Saved {
  screen: string;
  name: string;
  query: Record<string, string>;
}

const kept = 'millrace.filters';
const most = 50;

/** Returns the filters that the browser keeps, without entries of another shape. */
function readSaved(): Saved[] {
  const found = readStored<Saved[]>(() => localStorage, kept);
  return Array.isArray(found) ? found.filter((one) => one?.screen && one.name && typeof one.query === 'object') : [];
}

const saved = signal(readSaved());

function keep(filters: Saved[]): void {
  saved.value = filters.slice(-most);
  writeStored(() => localStorage, kept, saved.value);
}

/** Moves the focus from a filter's × to the next one's, the last one's, or the first field: the button is about to go. */
function passFocus(button: HTMLButtonElement): void {
  const all = [...document.querySelectorAll<HTMLElement>('section.saved .chip button')];
  const at = all.indexOf(button);
  const next = all[at + 1] ?? all[at - 1] ?? document.querySelector<HTMLElement>('.filter input, .filter select');
  next?.focus();
}

const isSame = (one: Saved, other: Saved) => one.screen === other.screen && one.name === other.name;

function SaveDialog({ route: { screen, query } }: { route: Route }) {
  return (
    <Dialog title="Save this filter">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get('name')).trim();
          const one = { screen, name, query: Object.fromEntries(query) };
          keep([...saved.value.filter((other) => !isSame(one, other)), one]);
          closeDialog();
          say(`Saved as ${name}, in this browser.`);
        }}
      >
        <label for="filter-name">Name</label>
        <input id="filter-name" name="name" required maxLength={60} autocomplete="off" />
        <div class="actions">
          <button type="submit" class="first">
            Save
          </button>
          <button type="button" onClick={closeDialog}>
            Close
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** The filters that are kept of a screen, and a way to keep the present one. */
export function SavedFilters({ route }: { route: Route }) {
  const here = saved.value.filter(({ screen }) => screen === route.screen);
  const isAsked = [...route.query].length > 0;
  if (here.length === 0 && !isAsked) return null;
  return (
    <section class="actions saved" aria-label="Saved filters">
      {here.map((one) => (
        <span class="chip" key={one.name}>
          <a href={to(one.screen, '', one.query)}>
            <Words text={one.name} most={60} />
          </a>
          <button
            type="button"
            aria-label={`Forget the filter ${one.name}`}
            onClick={(event) => {
              passFocus(event.currentTarget);
              keep(saved.value.filter((other) => !isSame(one, other)));
            }}
          >
            ×
          </button>
        </span>
      ))}
      {isAsked && (
        <button type="button" onClick={() => openDialog(() => <SaveDialog route={route} />)}>
          Save this filter
        </button>
      )}
      {isAsked && <a href={to(route.screen)}>Clear</a>}
    </section>
  );
}

/** Conditions of the address that no field shows, such as a stretch of time; each can be removed. */
export function OtherConditions({ route, shown }: { route: Route; shown: string[] }) {
  const others = [...route.query].filter(([name, value]) => value !== '' && !shown.includes(name));
  if (others.length === 0) return null;
  return (
    <p class="saved">
      {others.map(([name, value]) => (
        <span class="chip" key={name}>
          {name.replaceAll('_', ' ')}:{' '}
          {/^(since|before)$/.test(name) && Date.parse(value) ? (
            <Moment at={value} />
          ) : (
            <Words text={value} most={60} />
          )}
          <button type="button" aria-label={`Ask for any ${name}`} onClick={() => ask({ [name]: '' })}>
            ×
          </button>
        </span>
      ))}
    </p>
  );
}
