// Later migrations that drop or rewrite what the engine is, or drop what it needs.
import { levelIn } from '../project/engine-level.ts';
import { columnsOf } from '../project/stage-columns.ts';
import { definitionsIn } from '../sync/pipeline-migration.ts';

export interface Migration {
  name: string;
  text: string;
}

/**
 * The engine's names, but for the four functions that `npx millrace adopt` writes and drops again, and for millrace_evidence, where a
 * project has functions of its own beside the engine's.
 */
const engine = String.raw`(?:public\.millrace_|millrace(?!_evidence)\w*\.)(?!(?:adopt|adopt_portion|adopting_pipeline|begin)\b)\w*`;
const kinds = 'schema|table|view|function|procedure|trigger|type|domain|sequence|policy|index|event trigger';
const drops = [
  new RegExp(
    `\\bdrop\\s+(?:${kinds.replace(' ', '\\s+')})\\b(?!\\s+(?:if\\s+exists\\s+)?millrace\\.(?:adopt|adopt_portion|adopting_pipeline|begin)\\b)` +
      '[^;]*\\b(?:millrace\\w*\\.|millrace_)\\w*',
    'i',
  ),
  /\bdrop\s+schema\b[^;]*\bmillrace\w*/i,
  /\bcron\.unschedule\s*\(\s*'millrace-[\w-]*/i,
];
const rewrites = [
  // A plain create fails where the name is taken, so that it rewrites nothing.
  new RegExp(`\\bcreate\\s+or\\s+replace\\s+(?:view|function|procedure)\\s+${engine}`, 'i'),
  new RegExp(`\\bcreate\\s+table\\s+(?:if\\s+not\\s+exists\\s+)?${engine}`, 'i'),
  /\bcreate\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\s+millrace_\w*/i,
  /\balter\s+(?:table|view|function|procedure|type|domain|sequence)\s+(?:if\s+exists\s+)?(?:only\s+)?(?:public\.millrace_|millrace\w*\.)\w*/i,
  /\balter\s+schema\s+millrace\w*/i,
  /\bdisable\s+trigger\s+millrace_\w*/i,
];
/** Extensions that the engine needs. Dropping the last two deletes jobs and secrets, which a later creation does not restore. */
const needed = ['pg_net', 'pg_cron', 'supabase_vault'];

/**
 * A sentence for each migration behind the engine's that drops or rewrites a part of the engine. Schema tools write such migrations:
 * `db schema declarative sync` and `db diff` drop all that their files lack.
 */
export function dropFaults(migrations: Migration[]): string[] {
  const installs = migrations.findIndex(({ text }) => levelIn(text) !== null);
  if (installs < 0) return [];
  const later = migrations
    .map(({ name, text }, at) => ({ name, text, until: migrations.slice(0, at + 1) }))
    .slice(installs + 1)
    .filter(({ text }) => !text.includes('do $uninstall$') && levelIn(text) === null)
    .map(({ name, text, until }) => ({
      name,
      bare: text
        .replace(/--.*|\/\*[\s\S]*?\*\//g, ' ')
        .replaceAll('"', '')
        // A project may change and drop the views for dashboards, which `init --dashboard` writes.
        .replaceAll(/\bmillrace_watch\b/gi, 'watch'),
      // Looks at earlier migrations alone: a later one may define a stage again whose columns this one drops.
      ours: /\bdrop\s+column\b/i.test(text) ? stageColumns(until) : new Set<string>(),
    }));
  return later.flatMap(({ name, bare, ours }, at) => [
    ...changedParts(bare, ours).map(({ does, part }) => say(name, does, part)),
    ...droppedExtensions(
      bare,
      later.slice(at + 1).map((migration) => migration.bare),
    ).map(
      (extension) =>
        `supabase/migrations/${name} drops the extension ${extension}, which the engine needs: take that out` +
        `${extension === 'pg_net' ? ', or create it again after' : ''}.`,
    ),
  ]);
}

/** Returns the columns of all stages that these migrations leave defined. */
function stageColumns(migrations: Migration[]): Set<string> {
  const pipelines = [...definitionsIn(migrations.map(({ text }) => text)).values()];
  return new Set(pipelines.flatMap(({ stages }) => stages.flatMap(({ name }) => columnsOf(name))));
}

/** Returns the parts that a text drops, else those that it rewrites: a diff that drops a table alters others first. */
function changedParts(text: string, ours: Set<string>): { does: string; part: string }[] {
  const dropped = [...firstOf(drops, text), ...droppedColumns(text, ours)];
  if (dropped.length > 0) return dropped.map((part) => ({ does: 'drops', part }));
  return firstOf(rewrites, text).map((part) => ({ does: 'rewrites', part }));
}

const say = (name: string, does: string, part: string) =>
  `supabase/migrations/${name} ${does} what is Millrace's (${part.replace(/\s+/g, ' ').slice(0, 120)}): take that out; ` +
  '`npx millrace uninstall` removes the engine.';

const firstOf = (patterns: RegExp[], text: string) =>
  patterns.flatMap((pattern) => pattern.exec(text)?.[0] ?? []).slice(0, 1);

const droppedColumns = (text: string, ours: Set<string>) =>
  [...text.matchAll(/\bdrop\s+column\s+(?:if\s+exists\s+)?(\w+)/gi)]
    .filter(([, column = '']) => ours.has(column))
    .map(([part]) => part);

function droppedExtensions(text: string, later: string[]): string[] {
  const dropped = [...text.matchAll(/\bdrop\s+extension\s+(?:if\s+exists\s+)?([\w\s,]+)/gi)].flatMap(
    ({ 1: names = '', index, 0: part }) =>
      names.split(/[\s,]+/).map((name) => ({ name, rest: [text.slice(index + part.length), ...later].join(';\n') })),
  );
  const createdAgain = (name: string, rest: string) =>
    new RegExp(`\\bcreate\\s+extension\\s+(?:if\\s+not\\s+exists\\s+)?${name}\\b`, 'i').test(rest);
  return dropped
    .filter(({ name }) => needed.includes(name.toLowerCase()))
    .filter(({ name, rest }) => name.toLowerCase() !== 'pg_net' || !createdAgain(name, rest))
    .map(({ name }) => name);
}
