import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkLayers } from '../../tools/check/layers.ts';

/** The findings of the check in a project with these files. */
async function checkedAll(files: Record<string, string>): Promise<string> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'layers-'));
  onTestFinished(() => fs.rmSync(root, { recursive: true }));
  for (const [file, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), text);
  }
  return checkLayers(root);
}

const checked = (file: string, text: string) => checkedAll({ [file]: text });

const runtime = 'supabase/functions/_millrace/worker/drain.ts';

test.each([
  ['the runtime imports a client of a service', runtime, "import { ocr } from '../../_services/ocr.ts';"],
  ['the runtime imports an example, though only a type', runtime, "import type { A } from '../../_books/titles.ts';"],
  [
    'the runtime imports a pipeline, when it runs',
    runtime,
    "const { leads } = await import('../../_pipelines/leads.ts');",
  ],
  ['the runtime hands on what an example has', runtime, "export {\n  titles,\n} from '../../_books/titles.ts';"],
  ['the runtime loads a library of an example', runtime, "import { unzipSync } from 'fflate';"],
  ['the runtime loads the model’s library outside of the model', runtime, "import OpenAI from 'openai/helpers/zod';"],
  [
    'a client of a service imports an example',
    'supabase/functions/_services/ocr.ts',
    "import '../_documents/tokens.ts';",
  ],
  [
    'a function imports the stand-in',
    'supabase/functions/leads-intel/handler.ts',
    "import '../../../local/platform/keys.ts';",
  ],
  [
    'the platform imports a demo',
    'local/platform/stack.ts',
    "import { startSites } from '../demo/samples/sites/server.ts';",
  ],
  [
    'the platform imports an example',
    'local/platform/stack.ts',
    "import '../../supabase/functions/_pipelines/leads.ts';",
  ],
  [
    'the platform imports a local service',
    'local/platform/stack.ts',
    "const { startOcr } = await import('../services/ocr/server.ts');",
  ],
  [
    'a function of the runtime imports an example',
    'supabase/functions/millrace/index.ts',
    "import { leads } from '../_pipelines/leads.ts';",
  ],
  ['a local service imports a demo', 'local/services/ocr/server.ts', "import '../../demo/samples/books/misread.ts';"],
  ['a command imports a demo', 'tools/check.ts', "import { settings } from '../local/demo/settings.ts';"],
])('it is found when %s', async (_, file, text) => {
  const specifier = /'([^']+)'/.exec(text)?.[1];
  expect(await checked(file, text)).toContain(`${file} imports ${specifier}, which nothing in `);
});

test.each([
  [
    'the runtime imports itself, zod and Node',
    runtime,
    "import { z } from 'zod';\nimport '../errors.ts';\nimport 'node:fs';",
  ],
  ['an agent loads openai', 'supabase/functions/_millrace/agents/agent.ts', "import OpenAI from 'openai';"],
  ['a client of a service imports the runtime', 'supabase/functions/_services/ocr.ts', "import '../_millrace/mod.ts';"],
  [
    'an example imports a service',
    'supabase/functions/_books/book-file.ts',
    "import { pdf } from '../_services/pdf/pdf.ts';",
  ],
  ['the demo imports an example', 'local/demo/run.ts', "import '../../supabase/functions/_pipelines/leads.ts';"],
])('it passes when %s', async (_, file, text) => {
  expect(await checked(file, text)).toBe('');
});

test('files that import one another in a circle are named, though the imports are of types alone', async () => {
  const below = { 'cli/sync/b.ts': "import { c } from './c.ts';", 'cli/sync/c.ts': "import type { A } from './a.ts';" };
  expect(await checkedAll({ 'cli/sync/a.ts': "import { b } from './b.ts';", ...below })).toMatch(
    /^cli\/sync\/a\.ts, cli\/sync\/b\.ts, cli\/sync\/c\.ts import one another in a circle/,
  );
  expect(await checkedAll({ 'cli/sync/a.ts': '', ...below })).toBe('');
});

test.each([
  ['a command', 'cli/sync/sync-pipelines.ts', "import { add } from '../commands/add.ts';"],
  ['the loop of a worker', 'supabase/functions/_millrace/engine/engine-client.ts', "import '../worker/drain.ts';"],
  ['an entry', 'supabase/functions/_millrace/worker/drain.ts', "import { serveStage } from '../serve-stage.ts';"],
])('a folder of one layer imports none above it: %s', async (_, file, text) => {
  expect(await checked(file, text)).toContain('which lies above it in');
});
