// A page of docs or docs/patterns as its test reads it: its examples become modules and tables, its statements are run, and the
// messages it promises are held against those that come. A sentence that a test leaves out fails the test.

import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, onTestFinished } from 'vitest';
import { compileSharedLimits } from '../../supabase/functions/_millrace/compile/compile-shared-limits.ts';
import { definePipeline, type PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { SharedLimits } from '../../supabase/functions/_millrace/define/define-shared-limits.ts';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { definitionOf } from '../support/definitions.ts';
import type { Engine, Row } from '../support/engine.ts';

const projectFolder = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const functionsFolder = path.join(projectFolder, 'supabase', 'functions');
export const docsFolder = path.join(projectFolder, 'docs');
export const pagesFolder = path.join(docsFolder, 'patterns');

/** An example of a page: the path that its first line names, and its text. */
export interface Example {
  path: string;
  text: string;
}

export interface Page {
  name: string;
  text: string;
  /** The TypeScript examples. */
  examples: Example[];
  /** The SQL that a migration holds: what creates tables, functions and policies. */
  ddl: string[];
  /** The SQL that a person asks, one statement each. */
  statements: string[];
  /** The sentences that the section "What goes wrong" promises, with `n` for every number. */
  messages: string[];
}

/** Reads a page, of docs/patterns unless told otherwise. Throws when an example does not begin with the path of its file. */
export async function readPage(name: string, folder = pagesFolder): Promise<Page> {
  const text = await readFile(path.join(folder, `${name}.md`), 'utf8');
  const blocks = (language: string) =>
    [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, block]) => block ?? '');
  const examples = blocks('ts').map((block) => {
    const file = /^\/\/ supabase\/functions\/(\S+\.ts)\n/.exec(block)?.[1];
    if (!file) throw new Error(`${name}.md has an example whose first line does not name its file: ${block}`);
    return { path: file, text: block };
  });
  const sql = blocks('sql');
  const isDdl = (block: string) => /^(create|alter|grant)\b/.test(block);
  const wrong = /^## What goes wrong\n(.*?)(?=^## )/ms.exec(text)?.[1] ?? '';
  return {
    name,
    text,
    examples,
    ddl: sql.filter(isDdl),
    statements: sql.filter((block) => !isDdl(block)).flatMap(statementsOf),
    messages: [...wrong.matchAll(/^\| `([^`]+)` \|/gm)].map(([, message]) => blurred(message ?? '')),
  };
}

/** The statements of a block, without the comments behind them. */
function statementsOf(block: string): string[] {
  return block
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter(Boolean);
}

function blurred(message: string): string {
  return message.replaceAll(/\d+/g, 'n').replaceAll(/\s+/g, ' ').trim();
}

/** Writes the examples into a folder in which they find the project's shared code; returns it. */
export async function writeExamples(examples: Example[]): Promise<string> {
  const cacheFolder = path.join(projectFolder, '.cache');
  await mkdir(cacheFolder, { recursive: true });
  const folder = await mkdtemp(path.join(cacheFolder, 'docs-'));
  await symlink(path.join(functionsFolder, '_millrace'), path.join(folder, '_millrace'));
  await mkdir(path.join(folder, '_pipelines'));
  for (const file of await readdir(path.join(functionsFolder, '_pipelines'))) {
    await symlink(path.join(functionsFolder, '_pipelines', file), path.join(folder, '_pipelines', file));
  }
  for (const example of examples) {
    const file = path.join(folder, example.path);
    await mkdir(path.dirname(file), { recursive: true });
    // `wx`: an example does not replace a file of the project.
    await writeFile(file, example.text, { flag: 'wx' });
  }
  return folder;
}

/** A page at work on a test's database. */
export class OpenPage {
  readonly page: Page;
  private readonly modules: Record<string, unknown>;
  private readonly ran: Set<string>;
  private readonly read: Set<string>;

  constructor(page: Page, modules: Record<string, unknown>, ran: Set<string>, read: Set<string>) {
    this.page = page;
    this.modules = modules;
    this.ran = ran;
    this.read = read;
  }

  /** The value that an example exports under this name. */
  exported<T>(name: string): T {
    const value = this.modules[name];
    if (value === undefined) throw new Error(`${this.page.name}.md exports no ${name}`);
    return value as T;
  }

  /**
   * Runs the statement of the page that begins like this, with the page's numbers (such as 42 for a run) replaced by those
   * of the test; resolves to its rows.
   */
  async run(
    engine: Pick<Engine, 'rows'>,
    begins: string,
    numbers: Record<number, string | number> = {},
  ): Promise<Row[]> {
    const found = this.page.statements.filter((statement) => statement.startsWith(begins));
    expect(found, `statements of ${this.page.name}.md that begin with: ${begins}`).toHaveLength(1);
    this.ran.add(found[0] as string);
    return engine.rows((found[0] as string).replaceAll(/\b\d+\b/g, (number) => `${numbers[Number(number)] ?? number}`));
  }

  /** Fails the test unless the page's section "What goes wrong" has this message, numbers aside. */
  expectPromised(message: unknown): void {
    const text = blurred(String(message));
    // The text that follows an ellipsis differs from case to case.
    const promised = this.page.messages.find((known) =>
      known.endsWith('…') ? text.startsWith(known.slice(0, -1).trim()) : text === known,
    );
    if (!promised) throw new Error(`${this.page.name}.md does not promise this message: ${message}`);
    this.read.add(promised);
  }
}

/**
 * For a test file about one page: returns a function that sets the page up on a database (its tables, its pipelines) and
 * opens it. After all tests every statement of the page must have been run, and every message it promises have come.
 */
export function testPage(name: string, where = pagesFolder): (engine: Engine) => Promise<OpenPage> {
  const ran = new Set<string>();
  const read = new Set<string>();
  afterAll(async () => {
    const page = await readPage(name, where);
    expect([...ran].sort(), `statements of ${name}.md that were run`).toEqual([...new Set(page.statements)].sort());
    expect([...read].sort(), `errors of ${name}.md that came`).toEqual([...page.messages].sort());
  });
  return async (engine) => {
    const page = await readPage(name, where);
    for (const ddl of page.ddl) await engine.sql.query(ddl);
    const folder = await writeExamples(page.examples);
    onTestFinished(() => rm(folder, { recursive: true }));
    const modules: Record<string, unknown> = {};
    for (const example of page.examples) {
      Object.assign(modules, await import(path.join(folder, example.path)));
      for (const [, exported] of example.text.matchAll(/^export const (\w+) = defineSharedLimits\(/gm)) {
        for (const limit of Object.entries(compileSharedLimits(modules[exported as string] as SharedLimits))) {
          await engine.sql.query('select millrace.define_limit($1, $2)', limit);
        }
      }
      for (const [, exported] of example.text.matchAll(/^export const (\w+) = definePipeline\(/gm)) {
        await engine.define(definitionOf(modules[exported as string] as PipelineDefinition));
      }
    }
    return new OpenPage(page, modules, ran, read);
  };
}

/** The pipeline with some options of a stage changed, as the database takes it. Throws as the compiler does. */
export function changed(pipeline: PipelineDefinition, stage: string, changes: object): Row {
  const { entity } = pipeline.input;
  const stages = { ...pipeline.stages, [stage]: { ...pipeline.stage(stage), ...changes } };
  return definitionOf(definePipeline({ name: pipeline.name, entity, stages } as PipelineInput));
}

/** The message with which something is refused; fails the test when it is not. */
export async function messageOf(act: () => unknown): Promise<string> {
  try {
    await act();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('was not refused');
}
