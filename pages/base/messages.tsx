// One place on each page that says what came of an action, to those who listen too.
import { signal } from '@preact/signals';
import { Refusal } from './refusal.ts';
import { Words } from './words.tsx';

const said = signal('');
const complaint = signal<{ message: string; hint: string } | null>(null);

/** Says what was done. */
export function say(message: string): void {
  complaint.value = null;
  said.value = message;
}

/** Tells what went wrong and what to do about it. */
export function complain(error: unknown): void {
  said.value = '';
  const message = error instanceof Error ? error.message : String(error);
  complaint.value = { message, hint: error instanceof Refusal ? error.hint : '' };
}

/** Shows what was said last. */
export function Messages() {
  return (
    <div id="messages">
      <p id="status" role="status">
        {said.value && <Words text={said.value} most={500} />}
      </p>
      <div id="alert" role="alert">
        {complaint.value && (
          <>
            <p>
              <Words text={complaint.value.message} most={2000} />
            </p>
            {complaint.value.hint && (
              <p>
                <Words text={complaint.value.hint} most={2000} />
              </p>
            )}
          </>
        )}
      </div>
    </div>
  );
}
