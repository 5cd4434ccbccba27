import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { frozenFaults, readProject } from '../engine/releases.ts';
import { writeBuilt } from '../engine/write-built.ts';
import { skillText } from '../skill/write-skill.ts';
import { projectFolder, runScript, runSupabase } from './run-program.ts';
import { verbsText } from './verbs-file.ts';

const snapshotFile = path.join('tests', 'schema.snapshot.sql');
const snapshotHeading = `-- The tables, types and views that the migrations make, with their rights, as text, written by \`npm run check -- --write\`:
-- in a review it shows what a change does to them.
`;
const typesFile = path.join('supabase', 'functions', '_millrace', 'engine', 'database.types.ts');
const verbsFile = path.join('operators', 'verbs.ts');
const shownLines = 30;
const typesHeading = `// The types of the functions that the engine serves by the Data API, written by \`npm run check -- --write\` from the
// migrated database.
`;
/** Names of the engine's functions. Their arguments are all that the runtime needs to know of the schema. */
const ofTheEngine = /^ {6}millrace_\w+:/;

/** Builds the migration, and looks for changes to what a release has frozen. Resolves to findings. */
export async function checkInstall(): Promise<string> {
  await writeBuilt(projectFolder);
  return frozenFaults(readProject(projectFolder)).join('\n');
}

/** Compares the skill of coding assistants with the page that it is written of, or with `write` replaces it. Resolves to findings. */
export async function checkSkill(write: boolean): Promise<string> {
  const page = fs.readFileSync(path.join(projectFolder, 'docs', 'assistants.md'), 'utf8');
  return compare(path.join('skills', 'millrace', 'SKILL.md'), skillText(page), write);
}

/** Compares the verbs in TypeScript with the engine's tables, or with `write` replaces them. Resolves to findings. */
export async function checkVerbs(write: boolean): Promise<string> {
  const formatted = await format(verbsText(path.join(projectFolder, 'engine')));
  return formatted.ok ? compare(verbsFile, formatted.stdout, write) : formatted.output;
}

/**
 * Compares the schema of the database at `url`, but for its functions, with its snapshot, or with `write` replaces it. Resolves
 * to findings.
 */
export async function checkSnapshot(url: string, write: boolean): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const query = fs.readFileSync(path.join(import.meta.dirname, 'schema-snapshot.sql'), 'utf8');
    const { rows } = await client.query<{ of_function: boolean; line: string }>(query);
    const lines = rows.filter((row) => !row.of_function).map(({ line }) => `${line}\n`);
    return compare(snapshotFile, `${snapshotHeading}${lines.join('')}`, write);
  } finally {
    await client.end();
  }
}

/**
 * Compares the TypeScript types of the engine's functions in the database at `url` with their file, or with `write` replaces
 * it. The rest of the schema public belongs to the project, which generates its types for itself.
 */
export async function checkDatabaseTypes(url: string, write: boolean): Promise<string> {
  const generated = await runSupabase(['gen', 'types', `--remote=${url}?sslmode=disable`, '--schema', 'public']);
  if (!generated.ok) return generated.output;
  const whole = await format(generated.stdout);
  if (!whole.ok) return whole.output;
  const formatted = await format(engineTypes(whole.stdout));
  if (!formatted.ok) return formatted.output;
  return compare(typesFile, formatted.stdout, write);
}

function format(text: string): ReturnType<typeof runScript> {
  return runScript('@biomejs/biome/bin/biome', ['format', `--stdin-file-path=${typesFile}`], text);
}

/** Returns the engine's functions out of the formatted types of the whole schema. */
function engineTypes(generated: string): string {
  const json = /^export type Json =.*?;\n/ms.exec(generated)?.[0] ?? '';
  const functions = /^ {4}Functions: \{\n(.*?)^ {4}\};/ms.exec(generated)?.[1] ?? '';
  // Each begins with its name, six spaces in.
  const kept = functions.split(/^(?= {6}\w)/m).filter((text) => ofTheEngine.test(text));
  return `${typesHeading}\n${json}\nexport type EngineFunctions = {\n${kept.join('')}};\n`;
}

/** Resolves to the lines that differ, or with `write` brings the file up to date. */
function compare(name: string, wanted: string, write: boolean): string {
  const file = path.join(projectFolder, name);
  const found = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  if (found === wanted) return '';
  if (write) {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, wanted);
    return '';
  }
  const [before, after] = [found.split('\n'), wanted.split('\n')];
  const gone = before.filter((line) => !after.includes(line)).map((line) => `- ${line}`);
  const come = after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`);
  const lines = [...gone, ...come];
  return [`${name} is out of date:`, ...lines.slice(0, shownLines), ...(lines.length > shownLines ? ['…'] : [])].join(
    '\n',
  );
}
