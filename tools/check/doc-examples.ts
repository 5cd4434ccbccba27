// Checks that each function that a stage's author may call has an example, and that the examples compile.
import fs from 'node:fs';
import path from 'node:path';
import { projectFolder, runScript } from './run-program.ts';

const functions = 'supabase/functions';
const entry = `${functions}/_millrace/mod.ts`;
/**
 * Files that authors import beside the public entry; each function that they export is public, unless it is
 * `@internal`.
 */
const publicFiles = [
  `${functions}/_millrace/model/model.ts`,
  `${functions}/_millrace/model/embeddings.ts`,
  `${functions}/_millrace/model/prompt.ts`,
  `${functions}/_millrace/agents/agent.ts`,
  `${functions}/_millrace/agents/agent-tools.ts`,
  `${functions}/_millrace/agents/record-turns.ts`,
  `${functions}/_services/pdf/pdf.ts`,
];
const publicFolders = [`${functions}/_services`];
/** Names that examples use without declaring them. */
const fixtures = 'tools/check/example-fixtures.ts';

/** Something that an author can import, and the file that declares it. */
interface PublicName {
  name: string;
  file: string;
  /** Where to import it from. */
  from: string;
  isType: boolean;
}

interface Example {
  file: string;
  /** The line of the file on which the code begins. */
  line: number;
  code: string;
}

/** Looks for public functions without an example, and for examples that do not compile. Resolves to findings. */
export async function checkDocExamples(root = projectFolder): Promise<string> {
  const names = publicNames(root);
  const missing = names.filter(({ isType }) => !isType).flatMap((name) => missingExample(root, name));
  const sources = [...new Set(names.map(({ file }) => file))];
  const wrong = await compile(
    root,
    sources.flatMap((file) => examplesIn(root, file)),
    names,
  );
  return [...missing, ...wrong].join('\n');
}

/** Returns all that authors can import: what the public entry hands on, and what the other public files export. */
function publicNames(root: string): PublicName[] {
  const files = [...publicFiles, ...publicFolders.flatMap((folder) => filesIn(root, folder))];
  return [...handedOn(root), ...files.flatMap((file) => exportsOf(root, file))];
}

function handedOn(root: string): PublicName[] {
  const statements = read(root, entry).matchAll(/^export (type )?\{([^}]*)\} from '([^']+)';/gm);
  return [...statements].flatMap(([, type, list = '', specifier = '']) => {
    const file = path.posix.join(path.posix.dirname(entry), specifier);
    const names = list.split(',').map((name) => name.trim());
    return names.filter(Boolean).map((name) => ({
      name: name.replace(/^type /, ''),
      file,
      from: entry,
      isType: Boolean(type) || name.startsWith('type '),
    }));
  });
}

function exportsOf(root: string, file: string): PublicName[] {
  const pattern = /^export (?:declare )?(?:async )?(?:abstract )?(function|class|const|interface|type) (\w+)/gm;
  const found = [...read(root, file).matchAll(pattern)];
  return found.map(([, kind, name = '']) => ({
    name,
    file,
    from: file,
    isType: kind === 'interface' || kind === 'type',
  }));
}

/** Returns a sentence where a function or class has no example in its docstring. */
function missingExample(root: string, { name, file }: PublicName): string[] {
  const text = read(root, file);
  const declared = new RegExp(
    `^export (?:async |abstract )?(?:function|class|const) ${name}\\b(?: = (?:async )?\\(|[(<{ ](?!=))`,
    'm',
  );
  const at = declared.exec(text)?.index;
  if (at === undefined || /^export const \w+(?:: \w+)? = (?!(?:async )?\()/.test(text.slice(at))) return [];
  const comment = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(text.slice(0, at))?.[0] ?? '';
  return /@internal|@example\s+\* ```ts/.test(comment)
    ? []
    : [`${file}: ${name} has no @example with a block of \`\`\`ts`];
}

/** Returns the code blocks below each @example of a file. */
function examplesIn(root: string, file: string): Example[] {
  const text = read(root, file);
  const blocks = text.matchAll(/@example\s+\* ```ts\n((?:(?!```)[\s\S])*?)\s*\* ```/g);
  return [...blocks].map((block) => {
    const [whole, code = ''] = block;
    const before = text.slice(0, block.index + whole.indexOf(code));
    return { file, line: before.split('\n').length, code: code.replace(/^[ \t]*\* ?/gm, '') };
  });
}

/** Compiles the examples, all at once, in a folder that nothing else reads. Resolves to the errors, at the examples' lines. */
async function compile(root: string, examples: Example[], names: PublicName[]): Promise<string[]> {
  if (examples.length === 0) return [];
  const parent = path.join(root, '.cache');
  fs.mkdirSync(parent, { recursive: true });
  const folder = fs.mkdtempSync(path.join(parent, 'examples-'));
  try {
    const importable = [...names, ...exportsOf(root, fixtures)];
    for (const [index, example] of examples.entries()) {
      fs.writeFileSync(path.join(folder, `${index}.ts`), moduleOf(example.code, importable));
    }
    const config = { extends: '../../tsconfig.json', include: ['*.ts'] };
    fs.writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
    const { ok, output } = await runScript('typescript/bin/tsc', ['--noEmit', '--singleThreaded', '-p', folder]);
    return ok ? [] : output.split('\n').map((line) => atExample(line, examples));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/** Returns an example as a module: what it does not import itself comes first, on a line of its own. */
function moduleOf(code: string, importable: PublicName[]): string {
  const imported = [...code.matchAll(/import (?:type )?\{([^}]*)\}/g)].map(([, list]) => list).join(',');
  const declared = [...code.matchAll(/\b(?:const|let|function|class|interface|type) (\w+)/g)].map(([, name]) => name);
  const isUsed = (name: string) =>
    new RegExp(`(?<![.\\w'"])${name}\\b(?!['":])`).test(code) &&
    !declared.includes(name) &&
    !new RegExp(`\\b${name}\\b`).test(imported);
  const first = importable.filter(
    ({ name }, index) => importable.findIndex((other) => other.name === name) === index && isUsed(name),
  );
  const imports = first.map(
    ({ name, from, isType }) => `import { ${isType ? 'type ' : ''}${name} } from ${JSON.stringify(`../../${from}`)};`,
  );
  if (isUsed('z')) imports.push("import { z } from 'zod';");
  // An example says where things are as the code of a stage does.
  return `${imports.join(' ')} export {};\n${code.replaceAll("from '../_", `from '../../${functions}/_`)}\n`;
}

/** Returns an error of the compiler with the place in the docstring instead of that in the module. */
function atExample(line: string, examples: Example[]): string {
  return line.replace(/^\S*?(\d+)\.ts\((\d+),(\d+)\)/, (_, index, row) => {
    const example = examples[Number(index)];
    return example ? `${example.file}:${example.line + Number(row) - 2}` : line;
  });
}

/** Returns the text of a file, empty where there is none. */
function read(root: string, file: string): string {
  const whole = path.join(root, file);
  return fs.existsSync(whole) ? fs.readFileSync(whole, 'utf8') : '';
}

/** Returns the TypeScript files that lie in a folder itself. */
function filesIn(root: string, folder: string): string[] {
  const whole = path.join(root, folder);
  const names = fs.existsSync(whole) ? fs.readdirSync(whole) : [];
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`);
}
