// The verbs of the engine's tables as TypeScript, by which the commands, the assistants' tools and the operator's page name them.
import fs from 'node:fs';
import path from 'node:path';

const tables = ['verbs/run-verbs.sql', 'operators/verb-table.sql'];
/** A row of a table, below the comment that says what the verb does. */
const row =
  /((?:^ +-- .*\n)+)^ +\('(?<verb>\w+)', (?:'(?<about>\w+)', )?'\{(?<needs>[\w,]*)\}', (?<flags>(?:(?:null|'\{[\w,]*\}'|true|false),\s+)+)/gm;

const heading = `// The verbs that people do, written by \`npm run check -- --write\` from the tables of the engine: a new verb is a row there.

/** A verb of the operators. */
export interface Verb {
  about: 'run' | 'stage' | 'alert' | 'channel' | 'bulk';
  /** The fields that its request must have. */
  needs: readonly string[];
  /** Whether work is lost or left out. */
  destroys: boolean;
  /** A sentence on what the verb does, for pages and help. */
  says: string;
}
`;
const footing = `
type About<A> = { [V in keyof typeof verbs]: (typeof verbs)[V]['about'] extends A ? V : never }[keyof typeof verbs];
/** A verb that is done to runs, one by one or in bulk. */
export type RunVerb = About<'run'>;

const about = (what: Verb['about']) =>
  Object.entries(verbs).flatMap(([verb, row]) => (row.about === what ? [verb] : []));
export const runVerbs = about('run') as RunVerb[];
export const stageVerbs = about('stage') as About<'stage'>[];

/** Returns whether the request of a verb must have a field. */
export const isNeeded = (verb: keyof typeof verbs, field: string) => (verbs[verb] as Verb).needs.includes(field);
`;

/** Returns the text of `operators/verbs.ts`, by the tables in the folder `engine`. */
export function verbsText(engine: string): string {
  const rows = tables.flatMap((file) => {
    const text = fs.readFileSync(path.join(engine, 'modules', file), 'utf8');
    return [...text.matchAll(row)].flatMap(({ 1: comment = '', groups = {} }) => {
      const { verb = '', about = 'run', needs = '', flags = '' } = groups;
      const marks = flags.split(/,\s+/).filter((mark) => mark === 'true' || mark === 'false');
      // A run's verb says first whether operators do it.
      if (about === 'run' && marks[0] === 'false') return [];
      const says = comment
        .replaceAll(/^ +-- /gm, '')
        .trim()
        .replaceAll('\n', ' ');
      const fields = needs === '' ? [] : needs.split(',');
      return [`  ${verb}: ${JSON.stringify({ about, needs: fields, destroys: marks.at(-1) === 'true', says })},\n`];
    });
  });
  return `${heading}\nexport const verbs = {\n${rows.join('')}} as const satisfies Record<string, Verb>;\n${footing}`;
}
