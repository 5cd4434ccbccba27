import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { followSettings, tellChangedSettings } from '../../local/platform/follow-settings.ts';
import { reloadEdited } from '../../local/platform/functions/reload-edited.ts';
import { type Stack, startStack } from '../../local/platform/stack.ts';
import { until } from '../support/until.ts';

// A copy, in which tests change config.toml and add functions while the stack runs.
const project = fs.mkdtempSync(path.join(os.tmpdir(), 'functions-host-'));
const functionsDir = path.join(project, 'functions');
const written: string[] = [];
let stack: Stack;

beforeAll(async () => {
  for (const part of ['functions', 'config.toml']) {
    fs.cpSync(path.join(import.meta.dirname, part), path.join(project, part), { recursive: true });
  }
  stack = await startStack({
    services: false,
    migrations: path.join(import.meta.dirname, 'migrations'),
    functionsDir,
    env: { SETTING: 'of the project' },
    fsync: false,
    log: (source, line) => written.push(`${source}: ${line}`),
  });
});
afterAll(async () => {
  await stack.stop();
  fs.rmSync(project, { recursive: true });
});

const call = (name: string) => fetch(`${stack.functionsUrl}/${name}`);
const textOf = async (name: string) => (await call(name)).text();

/** Writes files into the folder of functions; JSON where the content is no text. */
function write(files: Record<string, unknown>) {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(functionsDir, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  }
}

async function rowsOf(sql: string) {
  const client = new pg.Client({ connectionString: stack.superDbUrl });
  await client.connect();
  return (await client.query(sql).finally(() => client.end())).rows;
}

/** Adds lines to config.toml as it is in the repository. */
function configure(lines: string) {
  const given = fs.readFileSync(path.join(import.meta.dirname, 'config.toml'), 'utf8');
  fs.writeFileSync(path.join(project, 'config.toml'), `${given}\n${lines}\n`);
}
const open = 'verify_jwt = false';
const saysWords = "import { words } from 'words';\nDeno.serve(() => new Response(words));\n";

describe('the functions host', () => {
  it('gives a function the platform’s environment, the project’s settings and its path from its name on', async () => {
    const authorization = `Bearer ${stack.anonKey}`;
    const answer = await fetch(`${stack.functionsUrl}/echo/part?q=1`, { headers: { authorization, 'x-own': 'yes' } });
    const { url, environment, headers } = await answer.json();
    expect(new URL(url).pathname + new URL(url).search).toBe('/echo/part?q=1');
    expect(headers['x-own']).toBe('yes');
    expect(environment.SUPABASE_URL).toBe(stack.apiUrl);
    expect(JSON.parse(environment.SUPABASE_SECRET_KEYS)).toEqual({ default: stack.secretKey });
    expect(environment.SETTING).toBe('of the project');
  });

  it('runs functions written with Deno.serve, which reach the database with their secret key', async () => {
    const answer = await call('served');
    expect(await answer.json()).toEqual({ data: [{ text: 'from the migration' }], error: null });
  });

  it('shares one process among concurrent requests, and lets work go on after the answer', async () => {
    const answers = await Promise.all([call('background/300'), call('background/300')]);
    const counts = await Promise.all(answers.map(async (answer) => (await answer.json()).count));
    expect(counts.sort()).toEqual([1, 2]);
    expect(stack.functions.logs('background')).not.toContain('worked 300');
    await until(() => stack.functions.logs('background').filter((line) => line === 'worked 300').length === 2);
  });

  it('starts a new process at the next request after one was killed', async () => {
    await call('background/0');
    const [before] = stack.functions.pids('background');
    await stack.functions.kill('background');
    expect(stack.functions.pids('background')).toEqual([]);
    expect((await (await call('background/0')).json()).count).toBe(1);
    expect(stack.functions.pids('background')).not.toContain(before);
  });

  it('starts a new process beside one that was retired, which finishes what it does', async () => {
    const worked = () => stack.functions.logs('background').filter((line) => line === 'worked 400').length;
    await call('background/400');
    const [before] = stack.functions.pids('background');
    stack.functions.retire('background');
    expect((await (await call('background/0')).json()).count).toBe(1);
    await until(() => worked() === 1 && !stack.functions.pids('background').includes(before as number));
  });

  it('answers 503 for a function that does not start, with the reason in its log', async () => {
    const answer = await call('broken');
    expect(answer.status).toBe(503);
    expect((await answer.json()).code).toBe('BOOT_ERROR');
    expect(stack.functions.logs('broken').join('\n')).toContain('this function cannot start');
  });
});

describe('what config.toml and deno.json say of a function', () => {
  it('is that its imports are mapped by its own deno.json, or by the import map that config.toml names', async () => {
    write({
      'own/index.ts': saysWords,
      'own/deno.json': { imports: { words: './words.ts' } },
      'own/words.ts': "export const words = 'its own';",
      'sharing/index.ts': saysWords,
      'sharing/deno.json': { imports: { words: './absent.ts' } },
      'shared.json': { imports: { words: './_words.ts', name: 'npm:@supabase/supabase-js@2.109.0' } },
      '_words.ts': "import { SupabaseClient } from 'name';\nexport const words = SupabaseClient.name;",
    });
    configure(`[functions.own]\n${open}\n[functions.sharing]\n${open}\nimport_map = "./functions/shared.json"`);
    expect(await textOf('own')).toBe('its own');
    expect(await textOf('sharing')).toBe('SupabaseClient');
  });

  it('loads a function anew when a module that it imports was edited', async () => {
    write({
      'edited/index.ts': saysWords.replace("'words'", "'./words.ts'"),
      'edited/words.ts': "export const words = 'old';",
    });
    configure(`[functions.edited]\n${open}`);
    fs.symlinkSync('nobody@nowhere', path.join(functionsDir, 'edited', '.#words.ts'));
    const end = await reloadEdited(functionsDir, stack.functions, 20);
    expect(await textOf('edited')).toBe('old');
    write({ 'edited/words.ts': "export const words = 'newer';" });
    await until(async () => (await textOf('edited')) === 'newer').finally(end);
  });

  it('gives functions the settings of a changed .env, the database the secrets among them, and says so', async () => {
    write({
      'set/index.ts':
        "Deno.serve(() => new Response(['SETTING', 'ADDED'].map((name) => Deno.env.get(name)).join(' ')));",
      '.env': 'SETTING=first\nGONE=1\n',
    });
    configure(`[functions.set]\n${open}`);
    const file = path.join(functionsDir, '.env');
    const said: string[] = [];
    const say = (message: string) => said.push(message.replace(`${file} `, ''));
    const ends = [followSettings(file, stack, say, { everyMs: 20 }), tellChangedSettings(file, say, 20)];
    onTestFinished(() => ends.forEach((end) => void end()));
    expect(await textOf('set')).toBe('of the project ');
    write({ '.env': 'SETTING=second\nADDED=too\nMILLRACE_WAKE_SECRET=of the file\n' });
    const names = 'ADDED, GONE, MILLRACE_WAKE_SECRET, SETTING';
    await until(() => said.length === 2);
    expect(said.sort()).toEqual([
      `has changed: functions have ${names} from their next request on.`,
      `has changed: this stack takes ${names} at its next start.`,
    ]);
    expect(await textOf('set')).toBe('second too');
    const secret = "select decrypted_secret from vault.decrypted_secrets where name = 'millrace_wake_secret'";
    expect(await rowsOf(secret)).toEqual([{ decrypted_secret: 'of the file' }]);
    write({ '.env': 'SETTING=third\nUSE_NEW_PIPELINE=yes\n' });
    await until(() => said.some((line) => line.includes('is not taken: USE_NEW_PIPELINE is "yes", but must be true')));
    expect(await textOf('set')).toBe('second too');
    // The file has changed since the stack read it at its start.
    write({ '.env': 'SETTING=fourth\n' });
    await until(() => said.some((line) => line.includes('functions have SETTING, USE_NEW_PIPELINE from')));
    said.length = 0;
    ends.push(followSettings(file, stack, say, { known: { SETTING: 'fourth', LATE: 'yes' } }));
    await until(() => said.includes('has changed: functions have LATE from their next request on.'));
  });

  it('holds from the next request on, for a function that was added as for one that runs', async () => {
    write({
      'late/index.ts': saysWords,
      'late/first.json': { imports: { words: './first.ts' } },
      'late/first.ts': "export const words = 'first';",
      'late/second.json': { imports: { words: './second.ts' } },
      'late/second.ts': "export const words = 'second';",
      'late/other.ts': "Deno.serve(() => new Response('another entry point'));",
    });
    const late = (map: string, more = open) =>
      configure(`[functions.late]\nimport_map = "./functions/late/${map}.json"\n${more}`);
    expect((await call('late')).status).toBe(401);
    late('first');
    expect(await textOf('late')).toBe('first');
    const [pid] = stack.functions.pids('late');
    late('second');
    expect(await textOf('late')).toBe('second');
    await until(() => !stack.functions.pids('late').includes(pid as number));
    late('second', `${open}\nentrypoint = "./functions/late/other.ts"`);
    expect(await textOf('late')).toBe('another entry point');
    late('second', 'verify_jwt = true');
    expect((await call('late')).status).toBe(401);
  });

  it('is that it is not there where it is not enabled', async () => {
    configure(`[functions.own]\n${open}\nenabled = false`);
    expect((await call('own')).status).toBe(404);
    configure(`[functions.own]\n${open}`);
    expect((await call('own')).status).toBe(200);
  });

  it('stands in config.json or config.jsonc where there is one', async () => {
    write({ '../config.jsonc': '{ // ours\n "functions": { "own": { "verify_jwt": true } }, }' });
    expect((await call('own')).status).toBe(401);
    write({ '../config.json': { functions: { own: { verify_jwt: false } } } });
    expect(await textOf('own')).toBe('its own');
    for (const name of ['config.json', 'config.jsonc']) fs.rmSync(path.join(project, name));
  });

  it('stays as it was while config.toml is no TOML, and the stack says so', async () => {
    configure(`[functions.own]\n${open}`);
    expect(await textOf('own')).toBe('its own');
    configure('[functions.own');
    expect(await textOf('own')).toBe('its own');
    expect(written.join('\n')).toContain('functions: config.toml is not read, what it said before holds: ');
    configure(`[functions.own]\n${open}`);
  });
});

describe('stopping the stack', () => {
  it('tells functions that they end and leaves no process', async () => {
    await stack.functions.kill('background');
    await call('background/60000');
    const [pid] = stack.functions.pids('background');
    await stack.functions.stop();
    expect(stack.functions.logs('background').at(-1)).toBe('drain');
    expect(() => process.kill(pid as number, 0)).toThrow();
    expect((await call('background/0')).status).toBe(503);
  });
});
