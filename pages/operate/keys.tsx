// The keyboard: a palette that finds screens, pipelines and runs, and letters that lead to screens and from row to row.
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ListedRun, Overview } from '../../operators/answers.ts';
import { closeDialog, Dialog, openDialog } from '../base/dialog.tsx';
import { go, to } from '../base/route.ts';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { screens } from './screens.ts';

/** Whether a key goes into a field; a checkbox takes no letters. */
const isTyping = ({ target }: Event) =>
  target instanceof Element && target.matches('input:not([type="checkbox"]), textarea, select');

/** Listens to the keys of the page; returns how to leave off. */
export function listenToKeys(): () => void {
  let isGoing = false;
  function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || document.querySelector('dialog')) return;
    const wasGoing = isGoing;
    isGoing = event.key === 'g';
    const screen = wasGoing && Object.entries(screens).find(([, { key }]) => key === event.key)?.[0];
    if (screen) go(to(screen));
    else if (event.key === '/') openPalette();
    else if (event.key === '?') openHelp();
    else if (event.key === 'j' || event.key === 'k') focusRow(event.key === 'j');
    else return;
    event.preventDefault();
  }
  document.addEventListener('keydown', onKey);
  return () => document.removeEventListener('keydown', onKey);
}

/** Moves the focus to the next row of a list, or to the one before: Tab alone stops at each link of each row between. */
function focusRow(isNext: boolean): void {
  const from = document.activeElement ?? document.body;
  const side = isNext ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const controls = [...document.querySelectorAll('main :is(tbody tr, li)')]
    .filter((row) => !row.contains(from) && from.compareDocumentPosition(row) & side)
    .map((row) => row.querySelector<HTMLElement>('a, button, input'))
    .filter((control) => control?.checkVisibility());
  controls.at(isNext ? 0 : -1)?.focus();
}

export const openPalette = () => openDialog(() => <Palette />);
export const openHelp = () => openDialog(() => <Help />);

interface Hit {
  address: string;
  title: string;
  kind: string;
}

const screenHits = (): Hit[] =>
  Object.entries(screens)
    .filter(([, { key }]) => key !== undefined)
    .map(([name, { title }]) => ({ address: to(name), title, kind: 'screen' }));

/**
 * Runs by what somebody has in hand: the number of a run or an attempt, the key of a row, a label, a trace. After them the newest that have
 * the text anywhere in their label, errors or metadata, and the way to all of these.
 */
async function findRuns(text: string): Promise<Hit[]> {
  const [{ runs: known }, { runs: beside }] = await Promise.all([
    read<{ runs: ListedRun[] }>('search', { text }),
    read<{ runs: ListedRun[] }>('runs', { text, limit: 10 }),
  ]);
  const all = [...known, ...beside.filter(({ run }) => !known.some((one) => one.run === run))];
  const list = { address: to('runs', '', { text }), title: `All runs with “${text}”`, kind: 'label, error, metadata' };
  const hits = all.map((run) => ({
    address: to('run', run.run),
    title: `${run.label ?? run.entity} – ${run.pipeline}, ${run.status}`,
    kind: `run ${run.run}`,
  }));
  return [...hits, list];
}

async function pipelineHits(): Promise<Hit[]> {
  const { pipelines } = await read<Overview>('overview');
  return pipelines.map(({ pipeline }) => ({ address: to('pipeline', pipeline), title: pipeline, kind: 'pipeline' }));
}

const matching = (hits: Hit[], text: string) =>
  hits.filter(({ title }) => title.toLowerCase().includes(text.toLowerCase())).slice(0, 20);

function Palette() {
  const text = useSignal('');
  const known = useSignal<Hit[]>(screenHits());
  const found = useSignal<Hit[]>([]);
  const isAnswered = useSignal(true);
  const place = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  // Before the next key comes.
  useLayoutEffect(() => input.current?.focus(), []);
  useEffect(() => {
    pipelineHits().then(
      (hits) => {
        known.value = [...known.value, ...hits];
      },
      () => {},
    );
  }, []);
  useEffect(() => {
    found.value = [];
    const asked = text.value.trim();
    if (asked === '') return;
    const timer = setTimeout(async () => {
      const hits = await findRuns(asked).catch(() => undefined);
      if (text.value.trim() !== asked) return;
      found.value = hits ?? [];
      isAnswered.value = hits !== undefined;
    }, 200);
    return () => clearTimeout(timer);
  }, [text.value]);
  const hits = [...matching(known.value, text.value.trim()), ...found.value];
  const chosen = hits[Math.min(place.value, hits.length - 1)];
  useEffect(() => list.current?.querySelector('.chosen')?.scrollIntoView({ block: 'nearest' }), [chosen]);
  function open(hit: Hit | undefined): void {
    if (!hit) return;
    closeDialog();
    go(hit.address);
  }
  return (
    <Dialog title="Search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          open(chosen);
        }}
      >
        <label for="palette">Screen, pipeline or run</label>
        <input
          id="palette"
          ref={input}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            place.value = 0;
          }}
          onKeyDown={(event) => {
            const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
            if (step === 0) return;
            event.preventDefault();
            place.value = Math.max(0, Math.min(hits.length - 1, place.value + step));
          }}
        />
      </form>
      <p class="hint" role="status">
        {!isAnswered.value && 'The project did not answer, so no run was searched. '}
        {text.value === ''
          ? 'A run is found by its number, trace or row, or by a text in its label, errors or metadata.'
          : hits.length > 0
            ? 'Enter opens the marked one; the arrows move the mark.'
            : isAnswered.value && 'Nothing is called so.'}
      </p>
      <ul class="hits" ref={list}>
        {hits.map((hit) => (
          <li key={hit.address}>
            <a href={hit.address} onClick={closeDialog} class={hit === chosen ? 'chosen' : undefined}>
              <Words text={hit.title} most={120} /> <span class="hint">{hit.kind}</span>
            </a>
          </li>
        ))}
      </ul>
      <button type="button" onClick={closeDialog}>
        Close
      </button>
    </Dialog>
  );
}

function Help() {
  const keys: [string, string][] = [
    ['/', 'search'],
    ['?', 'these keys'],
    ['j', 'the next row'],
    ['k', 'the row before'],
    ['Esc', 'close a dialog'],
    ...Object.values(screens).flatMap(({ key, title }): [string, string][] => (key ? [[`g ${key}`, title]] : [])),
  ];
  return (
    <Dialog title="Keys">
      <dl>
        {keys.map(([key, does]) => (
          <>
            <dt key={key}>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <button type="button" onClick={closeDialog}>
        Close
      </button>
    </Dialog>
  );
}
