// Which part of the project may import which: an example imports the runtime, a demo the stand-in, and none the other way round.
// No files import one another in a circle.
import fs from 'node:fs';
import path from 'node:path';

interface Layer {
  folder: string;
  /** The folders that its files may import from, beside its own. */
  mayImport: string[];
  /** The packages that they may import, and where; any when it is not given. */
  packages?: Record<string, string[]>;
  /**
   * Its folders from the ground up: a file imports from its own and from those before. Below them all lie the files beside the
   * folders, and above them the entries, by which others come in.
   */
  rooms?: { folders: string[]; entries: string[] };
}

const functions = 'supabase/functions';
const runtime = `${functions}/_millrace`;
const services = `${functions}/_services`;
/** The part of the operators' views that the page and the commands share. */
const operators = 'operators';
const askingModels = [`${runtime}/model`, `${runtime}/batches`, `${runtime}/agents`];

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
    rooms: {
      folders: [
        'engine',
        'define',
        'compile',
        'stage',
        'worker',
        'jobs',
        'alerts',
        'metrics',
        'traces',
        'model',
        'batches',
        'agents',
      ],
      entries: ['mod.ts', 'serve-stage.ts', 'serve-worker.ts', 'serve-millrace.ts'],
    },
  },
  { folder: operators, mayImport: [runtime] },
  { folder: services, mayImport: [runtime] },
  { folder: 'local/platform', mayImport: [runtime] },
  { folder: 'local/services', mayImport: ['local/platform', services, runtime] },
  { folder: 'local/demo', mayImport: ['local/platform', 'local/services', 'tools/command-arguments.ts', functions] },
  {
    folder: 'cli',
    mayImport: ['local/platform', runtime, operators],
    rooms: { folders: ['project', 'sync', 'check', 'operate', 'commands', 'trial'], entries: ['millrace.ts'] },
  },
  { folder: 'packages/client', mayImport: [] },
  { folder: 'packages/test', mayImport: ['cli', 'local/platform', runtime] },
  { folder: 'tools', mayImport: ['cli', 'local/platform', 'local/services', `${operators}/remedies.ts`, runtime] },
  // Belong to the runtime: a project deploys them without an example.
  { folder: `${functions}/job-complete`, mayImport: [runtime] },
  { folder: `${functions}/millrace`, mayImport: [runtime] },
  { folder: functions, mayImport: [] },
];

/** `from '…'`, `import '…'` and `import('…')`, types included. */
const importing = /(?:^|[\s;}])(?:from|import)\s*\(?\s*(['"])([^'"\n]+)\1/g;

/** Folders whose files import one another in no circle, beside those of the layers. */
const others = ['pages'];

/** Looks for imports under `root` that a layer forbids, and for circles. Resolves to a sentence for each, empty when there is none. */
export async function checkLayers(root: string): Promise<string> {
  const imports = new Map(
    [...layers.map(({ folder }) => folder), ...others]
      .flatMap((folder) => filesIn(root, folder))
      .map((file) => [file, importsOf(root, file)] as const),
  );
  const findings = layers.flatMap((layer) =>
    filesIn(root, layer.folder).flatMap((file) => faultsOf(file, imports.get(file) ?? [], layer)),
  );
  return [...new Set([...findings.sort(), ...circleFaults(imports)])].join('\n');
}

/** Returns the imports of a file: packages by their names, files by their paths from the root. */
function importsOf(root: string, file: string): { specifier: string; imported?: string }[] {
  return [...fs.readFileSync(path.join(root, file), 'utf8').matchAll(importing)].map(([, , specifier = '']) =>
    specifier.startsWith('.')
      ? { specifier, imported: path.posix.join(path.posix.dirname(file), specifier) }
      : { specifier },
  );
}

function faultsOf(file: string, imports: ReturnType<typeof importsOf>, layer: Layer): string[] {
  return imports.flatMap(({ specifier, imported }) => {
    if (imported === undefined) {
      return isPackageAllowed(specifier, file, layer)
        ? []
        : [`${file} imports ${specifier}, which nothing in ${layer.folder} may`];
    }
    if (!isFileAllowed(imported, layer)) return [`${file} imports ${specifier}, which nothing in ${layer.folder} may`];
    if (heightOf(imported, layer) <= heightOf(file, layer)) return [];
    return [
      `${file} imports ${specifier}, which lies above it in ${layer.folder}: hand it in as an argument, or move it down`,
    ];
  });
}

/** Returns how high a file lies among the rooms of its layer; 0 is the ground. */
function heightOf(file: string, { folder, rooms }: Layer): number {
  if (!rooms || !lies(file, folder)) return 0;
  const [room = '', ...rest] = path.posix.relative(folder, file).split('/');
  if (rest.length > 0) return rooms.folders.indexOf(room) + 1;
  return rooms.entries.includes(room) ? rooms.folders.length + 1 : 0;
}

/** Returns a sentence for each circle of files that import one another: Tarjan's strongly connected components. */
function circleFaults(imports: Map<string, ReturnType<typeof importsOf>>): string[] {
  const found = new Map<string, { at: number; low: number; open: boolean }>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string) => {
    const own = { at: found.size, low: found.size, open: true };
    found.set(file, own);
    open.push(file);
    for (const { imported = '' } of imports.get(file) ?? []) {
      if (!imports.has(imported)) continue;
      const other = found.get(imported) ?? visit(imported);
      if (other.open) own.low = Math.min(own.low, other.low);
    }
    if (own.low < own.at) return own;
    const circle = open.splice(open.indexOf(file));
    for (const member of circle) Object.assign(found.get(member) ?? {}, { open: false });
    if (circle.length > 1) circles.push(circle);
    return own;
  };
  for (const file of imports.keys()) if (!found.has(file)) visit(file);
  return circles.map(
    (circle) => `${circle.sort().join(', ')} import one another in a circle: move what they share below them`,
  );
}

function isFileAllowed(imported: string, { folder, mayImport }: Layer): boolean {
  return [folder, ...mayImport].some((allowed) => lies(imported, allowed));
}

function isPackageAllowed(specifier: string, file: string, { packages }: Layer): boolean {
  if (!packages || specifier.startsWith('node:')) return true;
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  return (packages[name] ?? []).some((place) => lies(file, place));
}

/** Returns whether a file is `place`, or lies in it. */
function lies(file: string, place: string): boolean {
  return file === place || file.startsWith(`${place}/`);
}

/** Returns the TypeScript and JavaScript files in a folder, as paths from the root with forward slashes. */
function filesIn(root: string, folder: string): string[] {
  const whole = path.join(root, folder);
  if (!fs.existsSync(whole)) return [];
  return (
    (fs.readdirSync(whole, { recursive: true }) as string[])
      // Files that a build has written to dist/ are no sources.
      .filter((name) => /\.(ts|mjs)$/.test(name) && !name.split(path.sep).includes('dist'))
      .map((name) => path.posix.join(folder, ...name.split(path.sep)))
  );
}
