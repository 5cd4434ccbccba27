// Which part of the project may import which: examples look down on the runtime, the demos on the stand-in, and none looks up.
import fs from 'node:fs';
import path from 'node:path';

interface Layer {
  folder: string;
  /** The folders that its files may import from, beside its own. */
  mayImport: string[];
  /** The packages that they may import, and where; any when it is not given. */
  packages?: Record<string, string[]>;
}

const functions = 'supabase/functions';
const runtime = `${functions}/_millrace`;
const services = `${functions}/_services`;
/** The shapes in which the door answers. */
const answers = 'pages/operate/answers.ts';
const needs = 'pages/operate/needs.ts';
const remedies = 'pages/operate/remedies.ts';
const askingModels = [`${runtime}/model`, `${runtime}/agents`];

/** The layers from the ground up. A file that lies in none, such as an example, is free. */
const layers: Layer[] = [
  {
    folder: runtime,
    mayImport: [],
    packages: {
      zod: [runtime],
      '@supabase/postgrest-js': [`${runtime}/engine`],
      standardwebhooks: [`${runtime}/jobs/webhook.ts`, `${runtime}/alerts/deliver-message.ts`],
      'ipaddr.js': [`${runtime}/public-hosts.ts`],
      openai: askingModels,
    },
  },
  { folder: services, mayImport: [runtime] },
  { folder: 'local/platform', mayImport: [runtime] },
  { folder: 'local/services', mayImport: ['local/platform', services, runtime] },
  { folder: 'local/demo', mayImport: ['local/platform', 'local/services', 'tools/command-arguments.ts', functions] },
  {
    folder: 'cli',
    mayImport: ['local/platform', runtime, 'pages/base/numbers.ts', 'pages/base/visible.ts', answers, needs, remedies],
  },
  { folder: 'tools', mayImport: ['cli', 'local/platform', 'local/services', runtime] },
  // Belong to the runtime: a project deploys them without an example.
  { folder: `${functions}/job-complete`, mayImport: [runtime] },
  { folder: `${functions}/millrace`, mayImport: [runtime] },
  { folder: functions, mayImport: [] },
];

/** `from '…'`, `import '…'` and `import('…')`, types included. */
const importing = /(?:^|[\s;}])(?:from|import)\s*\(?\s*(['"])([^'"\n]+)\1/g;

/** Looks for imports under `root` that a layer forbids. Resolves to a sentence for each, empty when there is none. */
export async function checkLayers(root: string): Promise<string> {
  const findings = layers.flatMap((layer) =>
    filesIn(root, layer.folder).flatMap((file) => faultsOf(root, file, layer)),
  );
  return findings.sort().join('\n');
}

function faultsOf(root: string, file: string, layer: Layer): string[] {
  const specifiers = [...fs.readFileSync(path.join(root, file), 'utf8').matchAll(importing)].map(
    ([, , name = '']) => name,
  );
  return specifiers.flatMap((specifier) => {
    const isAllowed = specifier.startsWith('.')
      ? isFileAllowed(path.posix.join(path.posix.dirname(file), specifier), layer)
      : isPackageAllowed(specifier, file, layer);
    return isAllowed ? [] : [`${file} imports ${specifier}, which nothing in ${layer.folder} may`];
  });
}

function isFileAllowed(imported: string, { folder, mayImport }: Layer): boolean {
  return [folder, ...mayImport].some((allowed) => lies(imported, allowed));
}

function isPackageAllowed(specifier: string, file: string, { packages }: Layer): boolean {
  if (!packages || specifier.startsWith('node:')) return true;
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  return (packages[name] ?? []).some((place) => lies(file, place));
}

/** Whether a file is `place`, or lies in it. */
function lies(file: string, place: string): boolean {
  return file === place || file.startsWith(`${place}/`);
}

/** The TypeScript and JavaScript files in a folder, as paths from the root with forward slashes. */
function filesIn(root: string, folder: string): string[] {
  const whole = path.join(root, folder);
  if (!fs.existsSync(whole)) return [];
  return (
    (fs.readdirSync(whole, { recursive: true }) as string[])
      // What a build has written there is none of the sources.
      .filter((name) => /\.(ts|mjs)$/.test(name) && !name.split(path.sep).includes('dist'))
      .map((name) => path.posix.join(folder, ...name.split(path.sep)))
  );
}
