import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSettings, settingWarnings } from '../../local/platform/settings.ts';

const run = promisify(execFile);
const projectFolder = path.join(import.meta.dirname, '..', '..');
const bootstrap = path.join(projectFolder, 'tools', 'bootstrap.mjs');
let folder: string;

beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-test-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Writes a script and returns its path as bootstrap wants it: from the project's folder. */
function script(text: string): string {
  const file = path.join(folder, 'script.mts');
  fs.writeFileSync(file, text);
  return path.relative(projectFolder, file);
}

describe('bootstrap', () => {
  it('runs a TypeScript file with its arguments, from any folder, and passes its exit code on', async () => {
    const file = script('const [, , a]: string[] = process.argv; console.log(a, process.cwd()); process.exitCode = 7;');
    const failure = await run(process.execPath, [bootstrap, file, 'given'], { cwd: folder }).catch((error) => error);
    expect(failure.stdout.trim()).toBe(`given ${projectFolder}`);
    expect(failure.code).toBe(7);
  });

  it('hands a signal on to what it runs', async () => {
    const file = script(`process.on('SIGTERM', () => { console.log('heard'); process.exit(0); });
                         setInterval(() => {}, 1000); console.log('up');`);
    const child = spawn(process.execPath, [bootstrap, file], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (text.includes('up')) child.kill('SIGTERM');
    });
    const code = await new Promise((resolve) => child.once('exit', resolve));
    expect(output).toBe('up\nheard\n');
    expect(code).toBe(0);
  });

  it('says how it is used when nothing is named', async () => {
    const failure = await run(process.execPath, [bootstrap]).catch((error) => error);
    expect(failure.code).toBe(2);
    expect(failure.stderr).toContain('Usage');
  });
});

describe('readSettings', () => {
  it('takes environment variables that .env.example names, and no others', () => {
    const settings = readSettings({ LLM_MODEL: 'a-model', LLM_URL: '', AWS_SECRET_ACCESS_KEY: 'x' });
    expect(settings.LLM_MODEL).toBe('a-model');
    expect(settings).not.toHaveProperty('AWS_SECRET_ACCESS_KEY');
    if (!fs.existsSync(path.join(projectFolder, '.env'))) expect(settings).toEqual({ LLM_MODEL: 'a-model' });
  });

  it('refuses wrong settings of the workers and of callbacks, each with its remedy', () => {
    expect(() => readSettings({ QUEUE_BATCH_SIZE: 'abc', WORKER_SECONDS: '3' })).toThrow(
      /QUEUE_BATCH_SIZE must be a whole number from 1 to 500.*WORKER_SECONDS must be a whole number from 5 to 190/,
    );
    expect(() => readSettings({ WEBHOOK_SECRET: 'secret' })).toThrow(
      /WEBHOOK_SECRET holds a secret that is not whsec_/,
    );
  });

  it('says which names were probably meant for a setting', () => {
    expect(settingWarnings({ LLM_ULR: 'x', WORKER_SECOND: '9', LLM_URL: 'x', PATH: '/bin', AWS_REGION: 'x' })).toEqual([
      'LLM_ULR is no setting, and nothing reads it: did you mean LLM_URL?',
      'WORKER_SECOND is no setting, and nothing reads it: did you mean WORKER_SECONDS?',
    ]);
  });
});
