// Defines the commands of the package and reads their arguments.
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { CommandError } from './command-error.ts';

type Options = NonNullable<ParseArgsConfig['options']>;

/** The options of every command. */
export const commonOptions = {
  workdir: { type: 'string', default: '.' },
  json: { type: 'boolean', default: false },
  jq: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

/** The options of commands that write into the project. */
export const writingOptions = { 'dry-run': { type: 'boolean', default: false } } as const;

/** `--remote` alone is the linked project, and read as ''; `--remote=` names a reference, a branch or an address. */
export const remoteOption = { remote: { type: 'string' } } as const;

type Values<Own extends Options> = ReturnType<
  typeof parseArgs<{ options: typeof commonOptions & Own; allowPositionals: true }>
>['values'];

/** The arguments of a command: its options by name, and the words after its own name. */
export interface Given<Own extends Options = typeof commonOptions> {
  values: Values<Own>;
  words: string[];
}

/** A command of the package. */
export interface Command {
  /** The text that `npx millrace NAME --help` prints. */
  usage: string;
  /** Reads its arguments and does its work. Resolves to what the person is told at the end. Throws a CommandError. */
  run(args: string[]): Promise<string>;
}

/** How a command stands in the table of all. */
export interface Entry {
  summary: string;
  /** Loads the command when it is asked for, so that none pays for what others import. */
  load(): Promise<Command>;
}

interface Definition<Own extends Options> {
  usage: string;
  options: Own;
  /** How many words may follow the command's name. */
  takesWords?: number;
  run(given: Given<Own>): Promise<string>;
}

/**
 * Makes a command that reads its own options and those that all have.
 *
 * @example
 * ```ts
 * export const greet = defineCommand({
 *   usage: 'npx millrace greet [--loud]',
 *   options: { loud: { type: 'boolean', default: false } },
 *   run: async ({ values }) => (values.loud ? 'HELLO' : 'hello'),
 * });
 * ```
 */
export function defineCommand<const Own extends Options>(definition: Definition<Own>): Command {
  const { usage, options, takesWords = 0, run } = definition;
  return {
    usage,
    run: async (args) => {
      const { values, positionals } = read(args, { ...commonOptions, ...options }, usage);
      const tooMany = positionals[takesWords];
      if (tooMany !== undefined) throw new CommandError(`${unexpected(tooMany, args)}\n\n${usage}`, 2);
      // A shell makes an empty word of a variable that is not set.
      if (positionals.includes('')) throw new CommandError(`There is an empty word.\n\n${usage}`, 2);
      return run({ values: values as Values<Own>, words: positionals });
    },
  };
}

function read(args: string[], options: Options, usage: string) {
  try {
    // The parser knows no option whose value may be left out.
    return parseArgs({
      args: args.map((arg) => (arg === '--remote' ? '--remote=' : arg)),
      options,
      allowPositionals: true,
    });
  } catch (error) {
    throw new CommandError(`${(error as Error).message.split(/\.\s/)[0]?.replace(/\.$/, '')}.\n\n${usage}`, 2);
  }
}

const unexpected = (word: string, args: string[]) =>
  args[args.indexOf(word) - 1] === '--remote'
    ? `Write --remote=${word}, with "=" and no space.`
    : `There is a word too many: ${word}.`;
