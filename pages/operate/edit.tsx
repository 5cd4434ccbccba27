// Editing a result or the row: a form made of the schema that the stage's function has told, and what it sends.
import type { WholeAttempt } from '../../operators/answers.ts';
import { to } from '../base/route.ts';
import { type Action, ActionButton, type Field } from './actions.tsx';

type Schema = Record<string, unknown>;
type Values = Record<string, unknown>;

interface Part extends Field {
  /** Turns the text of the field into its value. */
  read: (text: string | undefined) => unknown;
}

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readJson(name: string, text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    throw new Error(`${name} is no JSON: write it as JSON, texts in double quotes.`);
  }
}

/** The field of one value: plain for texts, numbers and choices, else its JSON. */
function partOf(name: string, schema: Schema, value: unknown): Part {
  const choices = schema.type === 'boolean' ? [true, false] : schema.enum;
  if (Array.isArray(choices) && choices.every((one) => typeof one !== 'object')) {
    const read = (text = '') => choices.find((one) => String(one) === text);
    return { name, label: name, choices: choices.map(String), value: String(value), read };
  }
  if (schema.type === 'string' && (value === undefined || typeof value === 'string')) {
    return { name, label: name, value: value ?? '', isLong: (value ?? '').length > 60, read: (text) => text ?? '' };
  }
  const text = JSON.stringify(value, null, 1) ?? '';
  const isLong = text.length > 60;
  return { name, label: name, hint: 'As JSON.', value: text, isLong, read: (given) => readJson(name, given) };
}

/** A form for a value by its schema: its fields, and how their texts are read; anything but an object is one field of JSON. */
export function formFor(schema: Schema | undefined, value: unknown) {
  if (!isObject(schema?.properties) || !isObject(value)) {
    const whole = partOf('value', {}, value);
    return { fields: [whole], read: (texts: Record<string, string>): unknown => whole.read(texts.value) };
  }
  const { properties } = schema as { properties: Record<string, Schema> };
  const names = [...new Set([...Object.keys(properties), ...Object.keys(value)])];
  const fields = names.map((name) => partOf(name, properties[name] ?? {}, value[name]));
  // An empty field whose value was not there stays away.
  const isThere = (name: string, texts: Values) => texts[name] !== undefined || value[name] !== undefined;
  const read = (texts: Record<string, string>): unknown =>
    Object.fromEntries(
      fields.flatMap(({ name, read: one }) => (isThere(name, texts) ? [[name, one(texts[name])]] : [])),
    );
  return { fields, read };
}

/** The values that differ from what was there. */
export const changedIn = (before: Values, after: Values) =>
  Object.fromEntries(
    Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])),
  );

/** The attempt whose result is edited. */
export interface Edited {
  run: number;
  stage: string;
  attempt: number;
  /** The newest attempt of the run that the page has seen. */
  last: number;
}

interface EditProps {
  of: Edited;
  form: WholeAttempt['form'];
  result: unknown;
  row: Values | null;
}

/** The other way to edit: the run stays as it is, and a copy of it goes on from the edit. */
const onCopy: Action['orElse'] = {
  label: 'Try on a copy',
  also: { copy: true },
  leadsTo: ({ copy }) => to('run', copy as number),
};
const kept = 'The journal keeps both. A copy of the run does the same and writes no column.';

/** The buttons that edit a stage's result and the row that it reads. */
export function EditButtons({ of, form, result, row }: EditProps) {
  const ofResult = formFor(form?.result, result);
  const readable = Object.entries((form?.row?.properties ?? {}) as Values).filter(([name]) => name in (row ?? {}));
  const ofRow = formFor({ properties: Object.fromEntries(readable) }, row ?? {});
  const unchecked = form ? '' : ' Its function has told no schema yet, so nothing checks the form of it.';
  return (
    <div class="actions">
      <ActionButton
        action={{
          label: 'Edit result',
          title: `Edit the result of ${of.stage}`,
          what: `The stage gets this result, and what comes after it starts over. ${kept}${unchecked}`,
          fields: ofResult.fields,
          request: (texts) => ({ verb: 'edit', ...of, result: ofResult.read(texts) }),
          harms: true,
          orElse: onCopy,
        }}
      />
      <ActionButton
        action={{
          label: 'Edit row',
          title: `Edit what ${of.stage} reads of the row`,
          what: `The row gets these values, and the stage and what comes after it start over. ${kept}`,
          fields: ofRow.fields,
          request: (texts) => ({
            verb: 'edit',
            ...of,
            row: changedIn(row ?? {}, ofRow.read(texts) as Values),
          }),
          refused: readable.length > 0 ? undefined : 'The stage names no column of the row in its input.',
          harms: true,
          orElse: onCopy,
        }}
      />
    </div>
  );
}
