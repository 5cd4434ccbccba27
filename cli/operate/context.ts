// Defines operators' commands: reads their options, and opens the project's API for them.
import type { ParseArgsOptionDescriptor } from 'node:util';
import { CommandError } from '../command-error.ts';
import { type Command, defineCommand, remoteOption } from '../define-command.ts';
import { type Api, connectApi } from './ask-api.ts';
import { findTarget, type Target } from './find-target.ts';

const word = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

/** All options of all operator's commands. */
const options = {
  pipeline: word,
  stage: word,
  status: word,
  error: word,
  entity: word,
  text: word,
  parent: word,
  since: word,
  before: word,
  limit: word,
  cursor: word,
  reason: word,
  yes: flag,
  from: word,
  message: word,
  permanent: flag,
  bulk: word,
  minutes: word,
  rate: word,
  'in-flight': word,
  shared: word,
  end: flag,
  'take-up': word,
  kind: word,
  all: flag,
  by: word,
  verb: word,
  run: word,
  attempt: word,
  origin: word,
  range: word,
  port: word,
  act: flag,
  watch: flag,
  web: { type: 'boolean', short: 'w' },
} as const satisfies Record<string, ParseArgsOptionDescriptor>;

export type OptionName = keyof typeof options;

/** Which runs a list or a bulk is about. */
export const filterOptions = [
  ...(['pipeline', 'stage', 'status', 'error', 'entity', 'parent', 'since', 'before'] as const),
];

/** The filter's options, for the usage of a command that takes them. */
export const filterUsage = `  --pipeline P --stage S --status running|completed|failed|cancelled --error CODE --entity KEY
  --parent RUN --since 2h --before 2026-11-21T08:00:00Z`;

export interface Context {
  /** The words after the command's name. */
  words: string[];
  values: { [Name in OptionName]?: string | boolean };
  api: Api;
  target: Target;
  /** A line for programs, in place of what people read. */
  json: boolean;
}

export interface Definition {
  usage: string;
  takes: readonly OptionName[];
  /** How many words may follow the command's name. */
  words: number;
  /** Resolves to the exit code: 1 where something is wrong. */
  run(context: Context): Promise<0 | 1>;
}

/**
 * Makes a command that calls the API of a project, with the options that it takes. The command prints its own output.
 */
export function defineOperate({ usage, takes, words: takesWords, run }: Definition): Command {
  return defineCommand({
    usage,
    takesWords,
    options: { ...remoteOption, ...Object.fromEntries(takes.map((name) => [name, options[name]])) },
    run: async ({ values: { workdir, json, jq, remote, help, ...values }, words }) => {
      const target = await findTarget({ remote, workdir });
      process.exitCode = await run({ words, values, target, api: connectApi(target), json });
      return '';
    },
  });
}

/** Returns the text of an option. Throws a CommandError where it is empty, as a shell makes it of a variable that is not set. */
export function textOf({ values }: Pick<Context, 'values'>, name: OptionName): string | undefined {
  const value = values[name];
  if (typeof value !== 'string') return undefined;
  if (value.trim() === '') throw new CommandError(`--${name} is empty: write something, or leave it out.`, 2);
  return value;
}

/** Returns the whole number that a word is; `what` names it in the CommandError about any other. */
export function numberIn(text: string, what: string): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new CommandError(`${what} is ${JSON.stringify(text.slice(0, 60))}, but must be a whole number from 1 on.`, 2);
  }
  return number;
}

/** Returns the number of an option, undefined where it is left out. */
export function numberOf(context: Pick<Context, 'values'>, name: OptionName): number | undefined {
  const text = textOf(context, name);
  return text === undefined ? undefined : numberIn(text, `--${name}`);
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns a time of an option: 30m, 2h or 7d ago, or a time that the API reads. */
function timeOf(context: Pick<Context, 'values'>, name: OptionName): string | undefined {
  const text = textOf(context, name);
  const [, many, unit] = /^(\d{1,5})([mhd])$/.exec(text ?? '') ?? [];
  if (!many) return text;
  return new Date(Date.now() - Number(many) * unitMs[unit as keyof typeof unitMs]).toISOString();
}

/** Returns the filter that the options make, as the API takes it. */
export function filterOf(context: Pick<Context, 'values'>): Record<string, unknown> {
  return defined({
    pipeline: textOf(context, 'pipeline'),
    stage: textOf(context, 'stage'),
    status: textOf(context, 'status'),
    error_code: textOf(context, 'error'),
    entity: textOf(context, 'entity'),
    parent: numberOf(context, 'parent'),
    since: timeOf(context, 'since'),
    before: timeOf(context, 'before'),
  });
}

/** Leaves out what is not there. */
export const defined = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Returns the first word as the pipeline, where --pipeline does not say it. */
export function pipelineOf(context: Pick<Context, 'values' | 'words'>): string | undefined {
  return textOf(context, 'pipeline') ?? context.words[0];
}
