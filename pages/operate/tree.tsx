// JSON as a tree: each level is drawn when it is opened, and of each a hundred entries, so that no size and no depth matters.
import { useSignal } from '@preact/signals';
import { many } from '../../operators/numbers.ts';
import { Words } from '../base/words.tsx';

const mostEntries = 100;

export function Tree({ value, name }: { value: unknown; name: string }) {
  const isOpen = useSignal(false);
  if (value === null || typeof value !== 'object') {
    return (
      <div>
        <span class="hint">
          <Words text={name} most={100} />:
        </span>{' '}
        <Words text={typeof value === 'string' ? value : JSON.stringify(value)} most={20_000} />
      </div>
    );
  }
  const entries = Object.entries(value);
  return (
    <details
      class="tree"
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>
        <Words text={name} most={100} />{' '}
        <span class="hint">
          {Array.isArray(value) ? many(entries.length, 'entry', 'entries') : many(entries.length, 'field')}
        </span>
      </summary>
      {isOpen.value &&
        entries.slice(0, mostEntries).map(([field, inner]) => <Tree key={field} name={field} value={inner} />)}
      {isOpen.value && entries.length > mostEntries && <p class="hint">and {entries.length - mostEntries} more</p>}
    </details>
  );
}
