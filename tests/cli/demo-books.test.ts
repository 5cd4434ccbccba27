import fs from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readArguments } from '../../local/demo/read-arguments.ts';
import { sampleBookText } from '../../local/demo/samples/books/sample-book.ts';
import { demoSettings } from '../../local/demo/settings.ts';
import { demoHere, temporaryFolder } from './demo-here.ts';
import { runNode } from './run-command.ts';

let temporary: string;

beforeEach(() => {
  temporary = temporaryFolder();
});
afterEach(() => {
  fs.rmSync(temporary, { recursive: true, force: true });
});

/** Does what `npm run demo -- books` does with a file of this content, with no settings but the defaults. */
function runOn(name: string, content: string) {
  const file = path.join(temporary, name);
  fs.writeFileSync(file, content);
  const env = { TMPDIR: temporary, LLM_URL: '', LLM_MODEL: '', OCR_URL: '' };
  return demoHere(['books', file], env);
}

describe.runIf(process.platform === 'linux')('npm run demo -- books', () => {
  it.runIf(process.env.SOAK)(
    'reads a book live and prints its contents with anchors, and where the document lies',
    async () => {
      const { code, stdout, stderr } = await runOn('clocks.txt', sampleBookText());
      expect(code, `${stdout}${stderr}`).toBe(0);
      expect(stdout).toContain("update books set split_status = 'queued';");
      expect(stdout).toMatch(/metadata +\w+; began when [23]\d of 36 pages were blended/);
      expect(stdout).toMatch(/toc link +completed/);
      expect(stdout).toMatch(/title +The Keeping of Small Clocks/);
      expect(stdout).toMatch(/ 9 Moving House, and Other Troubles \.+ 25 {2}#page-30/);
      expect(stdout).toMatch(/the bucket books:\n +[\w-]+\/[\w-]+\.json\n/);
      expect(stdout).toContain('millrace.check_invariants(): no violation');
    },
  );

  it('says what is wrong with a file that is no book', async () => {
    const { code, stdout } = await runOn('cut-off.pdf', '%PDF-1.7\n1 0 obj');
    expect(code).toBe(1);
    expect(stdout).toContain('There is no document');
    expect(stdout).toMatch(/✗ split: damaged_document: .*upload the whole\s+file/);
  });
});

describe('its arguments', () => {
  it('name one file at most', () => {
    expect(readArguments(['books'])).toMatchObject({ demo: 'books', files: [] });
    expect(readArguments(['books', 'a.pdf', '--keep'])).toMatchObject({ demo: 'books', files: ['a.pdf'], keep: true });
    expect(() => readArguments(['books', 'a.pdf', 'b.pdf'])).toThrow('"b.pdf" is one file too many');
    expect(() => readArguments(['books', '--url', 'https://example.com'])).toThrow('--url belongs to the leads');
    expect(readArguments(['leads'])).toMatchObject({ demo: 'leads', urls: [] });
  });

  it('are refused before anything is started when the file cannot be read', async () => {
    const env = { TMPDIR: temporary };
    const run = await runNode(['tools/bootstrap.mjs', 'local/demo/demo.ts', 'books', '/nowhere/a.pdf'], {
      env,
      timeoutMs: 30_000,
    });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('/nowhere/a.pdf cannot be read: there is no such file');
    expect(run.stdout).not.toContain('Starting the stack');
  });
});

describe('its settings', () => {
  it('pass over an OCR service elsewhere, which could not reach this machine’s Storage, and say so', () => {
    const { env, warnings } = demoSettings({ OCR_URL: 'https://ocr.example', OCR_AUTH_TOKEN: 'x' }, 'books');
    expect(env).not.toHaveProperty('OCR_URL');
    expect(env).not.toHaveProperty('OCR_AUTH_TOKEN');
    expect(warnings.join()).toContain('OCR_URL is ignored');
  });
});
