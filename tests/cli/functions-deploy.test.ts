import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { findTarget } from '../../cli/operate/find-target.ts';
import { supabaseBinary } from '../../local/platform/binaries.ts';
import { deployedFunctions, readFunctionConfigs } from '../../local/platform/functions/function-config.ts';
import { graphOf } from '../../tools/check/function-sizes.ts';
import { runProgram } from '../../tools/check/run-program.ts';
import { type ManagementApi, recordedBranch, startManagementApi, type Upload } from '../support/cli/management-api.ts';
import { projectFolder } from './run-command.ts';

const project = 'abcdefghijklmnopqrst';
const token = `sbp_${'0123456789abcdef'.repeat(3).slice(0, 40)}`;
/** A copy of the project with one function more, whose deno.json is its own. */
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'functions-deploy-'));
const functions = path.join(home, 'supabase', 'functions');
const own = {
  'deno.json': JSON.stringify({ imports: { words: './words.ts', zod: 'npm:zod@4.6.7' } }),
  'index.ts':
    "import { messageOf } from '../_millrace/errors.ts';\nimport { words } from 'words';\nconsole.log(messageOf, words);\n",
  'words.ts': "export const words = 'its own';\n",
};
let api: ManagementApi;
let output: string;

beforeAll(async () => {
  fs.cpSync(path.join(projectFolder, 'supabase', 'functions'), functions, { recursive: true });
  const config = fs.readFileSync(path.join(projectFolder, 'supabase', 'config.toml'), 'utf8');
  fs.writeFileSync(path.join(home, 'supabase', 'config.toml'), `${config}\n[functions.own]\nverify_jwt = false\n`);
  fs.mkdirSync(path.join(functions, 'own'));
  for (const [name, text] of Object.entries(own)) fs.writeFileSync(path.join(functions, 'own', name), text);
  api = await startManagementApi(project, token);
  output = await deploy();
});
afterAll(async () => {
  await api.stop();
  fs.rmSync(home, { recursive: true });
});

/** Deploys every function to the stand-in, with neither Docker nor a home that knows another project. */
async function deploy(): Promise<string> {
  const profile = path.join(home, 'profile.yaml');
  fs.writeFileSync(
    profile,
    `name: recorded\napi_url: ${api.url}\ndashboard_url: ${api.url}\nproject_host: localhost\n`,
  );
  const target = [`--remote=${project}`, '--profile', profile, '--workdir', home, '--agent', 'no', '--yes'];
  const env = {
    HOME: home,
    DOCKER_HOST: 'tcp://127.0.0.1:1',
    SUPABASE_ACCESS_TOKEN: token,
    SUPABASE_TELEMETRY_DISABLED: '1',
    DO_NOT_TRACK: '1',
  };
  const run = await runProgram(supabaseBinary(), ['functions', 'deploy', '--use-api', ...target], env);
  expect(run.ok, run.output).toBe(true);
  return run.output;
}

/** Unpacks an upload into an empty folder and follows its imports there. Throws when a file or a mapping is missing. */
async function unpackedGraph(name: string, { metadata, files }: Upload): Promise<string[]> {
  const folder = path.join(home, 'uploaded', name);
  for (const [file, text] of files) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    fs.writeFileSync(path.join(folder, file), text);
  }
  const importMap = metadata.import_map_path && path.join(folder, metadata.import_map_path);
  const graph = await graphOf({ entry: path.join(folder, metadata.entrypoint_path), importMap });
  return graph.files.map((file) => path.relative(folder, file));
}

test('`supabase functions deploy --use-API` deploys every function, without Docker', () => {
  expect(deployedFunctions(functions)).toContain('own');
  expect([...api.deployed].sort()).toEqual(deployedFunctions(functions));
  expect(output).not.toContain('WARN');
});

test('each function is uploaded with its entry point, its import map and no check of tokens', () => {
  for (const [name, { metadata, files }] of api.uploads) {
    const importMap = name === 'own' ? 'supabase/functions/own/deno.json' : 'supabase/functions/deno.json';
    expect(metadata, name).toMatchObject({
      entrypoint_path: `supabase/functions/${name}/index.ts`,
      import_map_path: importMap,
      verify_jwt: false,
    });
    expect([...files.keys()]).toContain(importMap);
  }
});

test('each function is uploaded with all that it imports, so that what arrives can be bundled', async () => {
  const configOf = readFunctionConfigs(functions);
  await Promise.all(
    [...api.uploads].map(async ([name, upload]) => {
      const { files } = await graphOf(configOf(name));
      const wanted = files.map((file) => path.relative(home, file));
      expect(await unpackedGraph(name, upload), name).toEqual(wanted);
      for (const [file, text] of upload.files) expect(text).toBe(fs.readFileSync(path.join(home, file), 'utf8'));
    }),
  );
});

/** Has the commands' own calls of the supabase CLI reach the stand-in, as somebody who is logged in. */
function logIn(asked = token): void {
  const env = { HOME: home, SUPABASE_PROFILE: path.join(home, 'profile.yaml'), SUPABASE_ACCESS_TOKEN: asked };
  for (const [name, value] of Object.entries({ ...env, SUPABASE_SECRET_KEY: '' })) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

/** Links the folder to the project, or leaves it unlinked. Tests run where npm has put the CLI. */
function folderLinkedTo(ref: string | undefined): string {
  const folder = fs.mkdtempSync(path.join(home, 'linked-'));
  fs.mkdirSync(path.join(folder, 'supabase', '.temp'), { recursive: true });
  fs.mkdirSync(path.join(folder, 'node_modules', '.bin'), { recursive: true });
  fs.symlinkSync(
    path.join(projectFolder, 'node_modules/.bin/supabase'),
    path.join(folder, 'node_modules/.bin/supabase'),
  );
  fs.writeFileSync(path.join(folder, 'supabase', 'config.toml'), '');
  if (ref) fs.writeFileSync(path.join(folder, 'supabase', '.temp', 'project-ref'), ref);
  return folder;
}

test('--remote is the linked project, a reference or a branch of it, with the secret key that the CLI reveals', async () => {
  logIn();
  const workdir = folderLinkedTo(project);
  const reached = (remote: string) => findTarget({ remote, workdir, revealsKey: true });
  const linked = { url: `https://${project}.supabase.co`, headers: { apikey: 'sb_secret_revealed' } };
  expect(await reached('')).toMatchObject(linked);
  expect(await reached(project)).toMatchObject(linked);
  expect(await reached(recordedBranch.name)).toMatchObject({
    url: `https://${recordedBranch.ref}.supabase.co`,
    headers: { apikey: 'sb_secret_feature-x' },
  });
  await expect(reached('feature-y')).rejects.toThrow(
    'The linked project has no branch feature-y: name one of feature-x, or write a reference',
  );
});

test('where no project can be meant, that is said before anybody asks for a key', async () => {
  logIn();
  const workdir = folderLinkedTo(undefined);
  const reached = (remote: string) => findTarget({ remote, workdir, revealsKey: true });
  const unlinked = 'This folder is linked to no project';
  await expect(reached('')).rejects.toThrow(unlinked);
  await expect(reached('feature-x')).rejects.toThrow(unlinked);
  await expect(reached('http://example.com')).rejects.toThrow('a URL that begins with https://');
});

test.each(['evil.example/', 'evil.example#aaaaaaaaaaa', 'user@evil.example', 'AAAAAAAAAAAAAAAAAAAA', '../x', ''])(
  'a linked reference that is none, %j, becomes no address',
  async (reference) => {
    logIn();
    const workdir = folderLinkedTo(project);
    fs.writeFileSync(path.join(workdir, 'supabase', '.temp', 'project-ref'), reference);
    for (const remote of ['', recordedBranch.name]) {
      await expect(findTarget({ remote, workdir, revealsKey: true })).rejects.toThrow(
        'supabase/.temp/project-ref holds no reference of a project, which has 20 lower-case letters',
      );
    }
  },
);

test('a reference that came with the repository gets no key', async () => {
  logIn();
  const workdir = folderLinkedTo(project);
  for (const args of [
    ['init', '--quiet'],
    ['add', '--force', 'supabase/.temp/project-ref'],
  ])
    execFileSync('git', args, { cwd: workdir });
  for (const remote of ['', recordedBranch.name]) {
    await expect(findTarget({ remote, workdir, revealsKey: true })).rejects.toThrow(
      `supabase/.temp/project-ref is in git, so its author chose the project ${project} that gets your key`,
    );
  }
  expect(await findTarget({ remote: project, workdir, revealsKey: true })).toMatchObject({
    url: `https://${project}.supabase.co`,
  });
});

test('the error of the CLI is passed on', async () => {
  logIn(token.replace(/.$/, '0'));
  const workdir = folderLinkedTo(project);
  await expect(findTarget({ remote: '', workdir, revealsKey: true })).rejects.toThrow(
    'SUPABASE_SECRET_KEY is not set, and `supabase projects api-keys` failed: ',
  );
  await expect(findTarget({ remote: 'feature-x', workdir })).rejects.toThrow(
    'feature-x is a branch, and `supabase branches` failed: ',
  );
});
