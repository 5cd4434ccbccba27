// Actions of operators: a button that says why it is refused, and a dialog that says what will happen before it does.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { closeDialog, Dialog, openDialog } from '../base/dialog.tsx';
import { Trouble } from '../base/fresh.tsx';
import { say } from '../base/messages.tsx';
import { askNow } from '../base/poll.ts';
import { go } from '../base/route.ts';
import { act, you } from './api.ts';

export interface Field {
  name: string;
  label: string;
  hint?: string;
  value?: string | number;
  /** The least and the most of a number; a field without is a text. */
  between?: [number, number];
  /** The values to choose from. */
  choices?: string[];
  /** Whether the text may have many lines. */
  isLong?: boolean;
  isNeeded?: boolean;
}

type Request = Record<string, unknown>;

export interface Action {
  /** The label of the button. */
  label: string;
  /** The title of the dialog; left out, the label. */
  title?: string;
  /** The text of the dialog: what will happen, and to how many runs or stages. */
  what: ComponentChildren;
  /** The request that is sent; with fields, a function makes it of their values. */
  request: Request | ((values: Record<string, string>) => Request | Request[]);
  fields?: Field[];
  /** Why the action is refused now. */
  refused?: string | undefined;
  harms?: boolean;
  /** Whether it is what most come for. */
  isMain?: boolean;
  /** Whether the action needs a reason. */
  needsReason?: boolean;
  /** The reason that was given before, which the dialog begins with. */
  reason?: string | undefined;
  /** The message afterwards. */
  done?: string;
  /** Another way to do it, with a button of its own: what goes into the request, and where its answer leads. */
  orElse?: { label: string; also: Request; leadsTo: (answer: Request) => string };
  /** Where a preview that it has asked for is shown; nothing is done before somebody begins it there. */
  leadsTo?: (answer: Record<string, unknown>) => string;
}

/** Returns why the viewer of the page may not act at all. */
export function mayNotAct(): string | undefined {
  return you.value?.role === 'viewer' ? 'You may read here, but not act.' : undefined;
}

interface ButtonProps {
  label: string;
  refused?: string | undefined;
  harms?: boolean | undefined;
  isMain?: boolean | undefined;
  onClick: () => void;
}

/** A button that stays reachable when it is refused, and tells why. */
export function ActButton({ label, refused, harms, isMain, onClick }: ButtonProps) {
  const why = mayNotAct() ?? refused;
  return (
    <button
      type="button"
      class={harms ? 'harms' : isMain ? 'first' : undefined}
      aria-disabled={why ? 'true' : undefined}
      title={why}
      aria-label={why && `${label}: ${why}`}
      onClick={() => (why ? say(`${label}: ${why}`) : onClick())}
    >
      {label}
    </button>
  );
}

/** A button that opens the action's dialog. */
export function ActionButton({ action }: { action: Action }) {
  return <ActButton {...action} onClick={() => openAction(action)} />;
}

/** Opens the action's dialog, or says why nobody may do it. */
export function openAction(action: Action): void {
  const why = mayNotAct() ?? action.refused;
  if (why) say(`${action.label}: ${why}`);
  else openDialog(() => <ActionDialog action={action} />);
}

/** The fields of an action, each with a label of its own. */
export function Fields({ fields }: { fields: Field[] }) {
  return (
    <>
      {fields.map(({ name, label, hint, value, between, choices, isLong, isNeeded }) => (
        <div key={name}>
          <label for={`action-${name}`}>{label}</label>
          {choices ? (
            <select id={`action-${name}`} name={name}>
              {choices.map((choice) => (
                <option key={choice} selected={choice === value}>
                  {choice}
                </option>
              ))}
            </select>
          ) : isLong ? (
            <textarea id={`action-${name}`} name={name} rows={8} defaultValue={value?.toString() ?? ''} />
          ) : (
            <input
              id={`action-${name}`}
              name={name}
              {...({ type: between ? 'number' : 'text', min: between?.[0], max: between?.[1] } as { type: 'text' })}
              defaultValue={value?.toString() ?? ''}
              required={isNeeded ?? false}
              maxLength={2000}
              aria-describedby={hint && `action-${name}-hint`}
            />
          )}
          {hint && (
            <p class="hint" id={`action-${name}-hint`}>
              {hint}
            </p>
          )}
        </div>
      ))}
    </>
  );
}

/** Reads a form's fields, without those that are empty. */
export function readFields(form: HTMLFormElement): Record<string, string> {
  const values = [...new FormData(form)].map(([name, value]) => [name, String(value).trim()] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== ''));
}

/** How a throttle is asked for, of a stage or a shared limit. */
const throttleFields: Field[] = [
  { name: 'count', label: 'Starts at most', value: 10, between: [1, 1_000_000], isNeeded: true },
  { name: 'seconds', label: 'in so many seconds', value: 60, between: [1, 86_400], isNeeded: true },
  { name: 'minutes', label: 'For how many minutes', value: 30, between: [1, 576_000], isNeeded: true },
];

/**
 * The throttle of a stage or a shared limit, or its end and another throttle while there is one.
 *
 * `what`: what a throttle does. `end`: what its end does.
 */
export function throttleActions(place: Request, isThrottled: boolean, what: string, end: string): Action[] {
  const throttle: Action = {
    label: isThrottled ? 'Change throttle' : 'Throttle',
    what,
    fields: throttleFields,
    request: ({ count, seconds, minutes }) => ({
      verb: 'throttle',
      minutes: Number(minutes),
      limits: { rate: { count: Number(count), per_seconds: Number(seconds) } },
      ...place,
    }),
    needsReason: true,
  };
  return isThrottled
    ? [{ label: 'Unthrottle', what: end, request: { verb: 'unthrottle', ...place } }, throttle]
    : [throttle];
}

/** Whether what a person fails is tried again. */
export const againChoices = ['as the definition says', 'no'];
export const isForGood = (again: string | undefined) => again === 'no';

export const reasonField: Field = {
  name: 'reason',
  label: 'Reason',
  hint: 'The journal keeps it.',
};

function ActionDialog({ action }: { action: Action }) {
  const {
    label,
    title = label,
    what,
    request,
    fields = [],
    harms,
    needsReason = false,
    reason: given = '',
    done,
    leadsTo,
    orElse,
  } = action;
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const values = readFields(event.currentTarget as HTMLFormElement);
    const other = (event.submitter as HTMLButtonElement | null)?.name === 'else' ? orElse : undefined;
    isBusy.value = true;
    error.value = undefined;
    try {
      const { reason } = values;
      const asked = typeof request === 'function' ? request(values) : request;
      let answer: Request = {};
      for (const one of [asked].flat()) answer = await act({ ...one, ...other?.also, ...(reason && { reason }) });
      closeDialog();
      const next = other?.leadsTo ?? leadsTo;
      if (next) return go(next(answer));
      say(done ?? `${title}: done.`);
      askNow();
    } catch (refusal) {
      error.value = refusal;
    } finally {
      isBusy.value = false;
    }
  }

  return (
    <Dialog title={title}>
      <p>{what}</p>
      <form onSubmit={submit}>
        <Fields fields={[...fields, { ...reasonField, value: given, isNeeded: needsReason }]} />
        {error.value !== undefined && <Trouble error={error.value} />}
        <div class="actions">
          <button type="submit" class={harms && !leadsTo ? 'harms' : 'first'} disabled={isBusy.value}>
            {leadsTo ? 'Preview' : label}
          </button>
          {orElse && (
            <button type="submit" name="else" disabled={isBusy.value}>
              {orElse.label}
            </button>
          )}
          <button type="button" onClick={closeDialog}>
            Close
          </button>
        </div>
      </form>
    </Dialog>
  );
}
