// npm run check: checks all that can be checked without running the tests, and prints one line each.
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { futureStamps } from '../cli/migration-stamps.ts';
import { checkAdvisors } from './check/advisors.ts';
import { checkFormat, checkFunctionTypes, checkPipelines, checkTypes, functionsFolder } from './check/code-checks.ts';
import { checkDocExamples } from './check/doc-examples.ts';
import { checkEngineLayers } from './check/engine-layers.ts';
import { checkFunctionSizes } from './check/function-sizes.ts';
import { checkDatabaseTypes, checkInstall, checkSkill, checkSnapshot, checkVerbs } from './check/generated-files.ts';
import { checkLayers } from './check/layers.ts';
import { withMigratedDatabase } from './check/migrated-database.ts';
import { nomenclatureFaults } from './check/nomenclature.ts';
import { checkFunctions, lintingPostgres } from './check/plpgsql-check.ts';
import { projectFolder } from './check/run-program.ts';
import { checkSafeUpdates } from './check/safe-updates.ts';
import { sentenceFaults } from './check/sentences.ts';
import { checkSqlStyle } from './check/sql-style.ts';
import { checkStageCode } from './check/stage-code.ts';
import { textCuts } from './check/text-cuts.ts';
import { argumentsOrExit, refuseKeptByNpm } from './command-arguments.ts';

const usage = `npm run check -- [--write]
  --write  correct the format, and bring the schema snapshot and the generated types up to date`;
const migrationsFolder = path.join(projectFolder, 'supabase', 'migrations');
const shownLines = 60;
const lighter = 'load a lighter library, or do the work in a stage of its own';
const downwards = 'move what both need into the lower layer, or hand it over as an argument';
const belowCore = 'let a hook or the module above make the call, or move what is called below';
const withWhere = 'give it one, or the Data API of a hosted project refuses it (safeupdate)';
const lintAdvice =
  'supabase db lint says so to every project: rewrite it, or add the reason in tools/check/plpgsql-check.ts';
const byWriting = 'run `npm run check -- --write` and commit what it changes';

interface Check {
  name: string;
  remedy: string;
  /** How to get what the check needs, where a machine may lack it. */
  lacks?: string;
  /** Resolves to what is wrong, empty when all is well; null when the machine lacks what the check needs. */
  findings: Promise<string | null>;
}

/** Starts every check that needs no database. */
async function codeChecks(write: boolean): Promise<Check[]> {
  const format = checkFormat(write);
  // The others should read files as they stand after the correction.
  if (write) await format;
  const install = checkInstall();
  await install.catch(() => {});
  return [
    { name: 'format and lint', remedy: byWriting, findings: format },
    { name: 'types', remedy: 'correct them', findings: checkTypes() },
    { name: 'types of the functions in Deno', remedy: 'correct them', findings: checkFunctionTypes() },
    { name: 'migration of the engine', remedy: byWriting, findings: install },
    { name: 'examples in docstrings', remedy: 'write or correct them', findings: checkDocExamples() },
    { name: 'skill of assistants', remedy: byWriting, findings: checkSkill(write) },
    { name: 'verbs', remedy: byWriting, findings: checkVerbs(write) },
    { name: 'nomenclature', remedy: 'use the words of docs/nomenclature.md', findings: nomenclature() },
    { name: 'sentences', remedy: 'begin with the subject; one thought a sentence', findings: sentences() },
    { name: 'layers', remedy: downwards, findings: checkLayers(projectFolder) },
    { name: 'layers of the SQL', remedy: belowCore, findings: checkEngineLayers(projectFolder, write) },
    { name: 'style of the SQL', remedy: 'correct the lines named', findings: checkSqlStyle(projectFolder) },
    { name: 'stamps of the migrations', remedy: 'do as it says', findings: stamps() },
    { name: 'every UPDATE and DELETE has a WHERE', remedy: withWhere, findings: checkSafeUpdates(projectFolder) },
    { name: 'pipelines', remedy: 'do as it says', findings: checkPipelines() },
    { name: 'cuts of texts', remedy: 'cut by grapheme', findings: cuts() },
    { name: 'code of the stages', remedy: 'do as it says', findings: checkStageCode() },
    { name: 'sizes of the functions', remedy: lighter, findings: checkFunctionSizes(functionsFolder) },
    {
      name: 'plpgsql_check',
      remedy: lintAdvice,
      lacks: 'apt-get install postgresql-15-plpgsql-check',
      findings: lint(),
    },
  ];
}

async function lint(): Promise<string | null> {
  const postgres = lintingPostgres();
  return postgres ? checkFunctions(postgres) : null;
}

async function nomenclature(): Promise<string> {
  return nomenclatureFaults(projectFolder).join('\n');
}

async function sentences(): Promise<string> {
  return sentenceFaults(projectFolder);
}

async function cuts(): Promise<string> {
  return textCuts(functionsFolder);
}

async function stamps(): Promise<string> {
  return futureStamps(fs.readdirSync(migrationsFolder), Date.now()).join('\n');
}

/** Starts the checks of the migrated database at `url`. */
function databaseChecks(url: string, write: boolean): Check[] {
  const advice = 'correct the migration, or add the finding to those justified in tools/check/advisors.ts';
  return [
    { name: 'schema snapshot', remedy: byWriting, findings: checkSnapshot(url, write) },
    { name: 'database types', remedy: byWriting, findings: checkDatabaseTypes(url, write) },
    { name: 'database advisors', remedy: advice, findings: checkAdvisors(url) },
  ];
}

/** Prints each check's outcome in order. Resolves to the number that failed. */
async function report(checks: Check[]): Promise<number> {
  // Caught at once: one that breaks while an earlier one is awaited would end the program.
  const caught = checks.map((check) => ({ ...check, findings: check.findings.catch(String) }));
  let failed = 0;
  for (const { name, remedy, lacks, findings } of caught) {
    const found = await findings;
    if (found === null) {
      console.log(`${pc.yellow('not run')} ${name}: ${lacks}`);
      continue;
    }
    if (!found) {
      console.log(`${pc.green('ok')}      ${name}`);
      continue;
    }
    failed += 1;
    console.log(`${pc.red('FAILED')}  ${name}: ${remedy}`);
    const lines = found.split('\n');
    for (const line of lines.slice(0, shownLines)) console.log(`        ${line}`);
    if (lines.length > shownLines) console.log(`        … and ${lines.length - shownLines} lines more`);
  }
  return failed;
}

const { write } = argumentsOrExit(usage, () => {
  refuseKeptByNpm('check', ['write']);
  const options = { write: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } } as const;
  return parseArgs({ options }).values;
});
const withoutDatabase = await report(await codeChecks(write));
const withDatabase = await withMigratedDatabase((url) => report(databaseChecks(url, write))).catch((error) =>
  report([{ name: 'migrations', remedy: 'correct them', findings: Promise.resolve(String(error)) }]),
);
process.exit(withoutDatabase + withDatabase === 0 ? 0 : 1);
