// What `npm pack` runs before: bundles the commands to JavaScript, and says what the runtime is that goes with them.
import fs from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { digestOf, type Manifest, runtimeFiles, runtimeFolder, runtimePackages } from '../cli/project/shipped.ts';
import { CONTRACT } from '../supabase/functions/_millrace/engine/platform.ts';
import { nextTarget, readProject } from './engine/releases.ts';
import { writeBuilt } from './engine/write-built.ts';

const root = path.join(import.meta.dirname, '..');
const dist = path.join(root, 'dist');

/** What is left to the packages that npm installs beside the bundle: those whose files a project's definitions are bundled with. */
const external = ['esbuild', ...runtimePackages];

function manifest(): Manifest {
  const project = readProject(root);
  const { dependencies } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  const imports = (name: string) => [name, `npm:${name}@${dependencies[name]}`];
  return {
    release: project.version,
    level: nextTarget(project)?.level ?? 1,
    contract: CONTRACT,
    imports: Object.fromEntries(runtimePackages.map(imports)),
    files: Object.fromEntries(
      Object.entries(runtimeFiles(path.join(root, runtimeFolder))).map(([file, text]) => [file, digestOf(text)]),
    ),
  };
}

await writeBuilt(root);
fs.rmSync(dist, { recursive: true, force: true });
await build({
  entryPoints: [path.join(root, 'cli', 'millrace.ts')],
  outfile: path.join(dist, 'millrace.mjs'),
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  external,
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire as requireFrom } from 'node:module';\nconst require = requireFrom(import.meta.url);",
  },
});
fs.writeFileSync(path.join(dist, 'manifest.json'), `${JSON.stringify(manifest(), null, 2)}\n`);
