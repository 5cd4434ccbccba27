import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { DocumentProgress } from '../../local/demo/documents/document-progress.ts';
import { tellApart, whyRefused } from '../../local/demo/documents/document-source.ts';
import { documentsTable } from '../../local/demo/documents/watch-documents.ts';
import { readArguments } from '../../local/demo/read-arguments.ts';
import { demoSettings } from '../../local/demo/settings.ts';
import { demoHere, temporaryFolder } from './demo-here.ts';

let temporary: string;

beforeEach(() => {
  temporary = temporaryFolder();
});
afterEach(() => {
  fs.rmSync(temporary, { recursive: true, force: true });
});

const none = ['LLM_URL', 'LLM_MODEL', 'OCR_URL', 'DEEPGRAM_URL', 'GRAPHITI_URL', 'USE_NEW_PIPELINE'];
const noSettings = () => ({ TMPDIR: temporary, ...Object.fromEntries(none.map((name) => [name, ''])) });

/** Does what `npm run demo -- documents` does with these files, with no settings but the defaults and those given. */
function runOn(files: string[], settings: Record<string, string> = {}) {
  return demoHere(['documents', ...files], { ...noSettings(), ...settings });
}

/** The address of a model that answers no question. */
async function babblingModel(): Promise<string> {
  const content = [{ type: 'output_text', text: 'Well, well.', annotations: [] }];
  const output = [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }];
  const answer = JSON.stringify({ id: 'resp_1', object: 'response', status: 'completed', model: 'babbler', output });
  const server = http.createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

function write(name: string, content: string): string {
  const file = path.join(temporary, name);
  fs.writeFileSync(file, content);
  return file;
}

const survey = `# Survey\n\n${'The Hollin Lock was rebuilt by Brackmoor Engineering for the Wendle Canal Trust. '.repeat(6)}\n`;

describe.runIf(process.platform === 'linux')('npm run demo -- documents', () => {
  it.runIf(process.env.SOAK)(
    'brings a file of each type to its chunks and facts, names what they share, and says why the broken one failed',
    async () => {
      const { code, stdout, stderr } = await runOn([], { LLM_PRICE_INPUT: '1', LLM_PRICE_OUTPUT: '2' });
      expect(code, `${stdout}${stderr}`).toBe(0);
      expect(stdout).toContain("update document set extraction_status = 'queued';");
      const byReader = {
        'restoration-report.pdf': /pdf, \d+ pages/,
        'council-minutes.docx': /docx/,
        'newsletter.html': /html/,
        'lock-survey.md': /markdown/,
        'notice-board.jpg': /ocr, 1 page/,
        'site-meeting.wav': /transcription, 9 s/,
      };
      for (const [name, reader] of Object.entries(byReader)) {
        expect(stdout).toMatch(
          new RegExp(`${name} +${reader.source} +[1-9]\\d* +[1-9]\\d* +[1-9]\\d* +\\$0\\.\\d{4} `),
        );
        expect(stdout).toMatch(new RegExp(`s {2}${name} +kg_ingest +completed (\\d+)/\\1`));
      }
      expect(stdout).toMatch(/✗ broken-upload\.pdf {2}\(broken on purpose\)\n +extraction: /);
      const places = [...stdout.matchAll(/^ {2}(?:The )?Pell Aqueduct.*\n +in (\d) documents?: /gm)].map(([, n]) =>
        Number(n),
      );
      expect(Math.max(...places)).toBeGreaterThanOrEqual(5);
      expect(stdout).toMatch(/^ {6}– .*Hollin Lock/m);
      expect(stdout).toMatch(/org_ostrey_council +email +1 +1 +\$0\.\d{4}/);
      expect(stdout).toMatch(/lock-survey\.md +documents +completed +completed/);
      expect(stdout).toMatch(/Documents +7: 6 completed, 1 failed\n/);
      expect(stdout).toContain('millrace.check_invariants(): no violation');
    },
    180_000,
  );

  it('goes on with the other files where one cannot be read, and ends with 1', async () => {
    write('survey.txt', survey);
    // As npm says it when the user stands in another folder than the project's.
    const { code, stdout } = await runOn(['survey.txt', write('empty.pdf', '')], { INIT_CWD: temporary });
    expect(code).toBe(1);
    expect(stdout).toMatch(/survey\.txt +(markdown|plain text) +1 +[1-9]/);
    expect(stdout).toMatch(/✗ empty\.pdf\n +extraction: .*empty/);
    expect(stdout).not.toContain('broken on purpose');
    expect(stdout).toContain('The stand-ins are free.');
    expect(stdout).not.toContain('millrace.retry(');
  }, 180_000);

  it.runIf(process.env.SOAK)(
    'goes the old way, each document in one call, where USE_NEW_PIPELINE is false',
    async () => {
      const { code, stdout, stderr } = await runOn([write('survey.md', survey)], { USE_NEW_PIPELINE: 'false' });
      expect(code, `${stdout}${stderr}`).toBe(0);
      expect(stdout).toContain(
        'USE_NEW_PIPELINE is false: documents go the old way, document_monolith, each in one call.',
      );
      expect(stdout).toMatch(/survey\.md +monolith +completed/);
      expect(stdout).toMatch(/survey\.md +document_monolith +completed +completed/);
      expect(stdout).toMatch(/Documents +1: 1 completed, 0 failed\n +Runs +1; 1 completed/);
    },
    180_000,
  );

  it.runIf(process.env.SOAK)(
    'says what fails and is tried again, which file is which, and how to go on, where the model answers nonsense',
    async () => {
      const files = ['one', 'two'].map((folder) => {
        fs.mkdirSync(path.join(temporary, folder));
        return write(`${folder}/survey.md`, survey);
      });
      const film = write('film.mp4', '');
      fs.truncateSync(film, 51 * 1024 * 1024);
      const model = { LLM_URL: await babblingModel(), LLM_MODEL: 'babbler' };
      const { code, stdout } = await runOn([...files, film], model);
      expect(code).toBe(1);
      expect(stdout).toContain('USE_NEW_PIPELINE is true');
      expect(stdout).toMatch(/film\.mp4 was not uploaded: it has 51\.0 MB, .* at most 50 MB a file .*: split it/);
      for (const name of ['one/survey.md', 'two/survey.md']) {
        expect(stdout).toMatch(new RegExp(`${name} +kg of 1 chunk failed, tried again in \\d+ s: `));
        expect(stdout).toMatch(new RegExp(`${name} +kg_ingest +failed 0/1, 1 failed`));
        expect(stdout).toMatch(new RegExp(`✗ ${name}\n(?: {6}.*\n)+ +try again: select millrace\\.retry\\(\\d+\\);`));
      }
      expect(stdout).toContain('with --keep it stays up');
      expect(stdout).toMatch(/Documents +3: 0 completed, 2 failed, 1 not uploaded/);
      expect(stdout).toMatch(/Runs +4, of documents and their chunks; 0 completed/);
      expect(stdout).not.toContain('stand-ins are free');
    },
    180_000,
  );
});

describe('its files', () => {
  it('that have the same name are told apart by as much of their paths as that takes', () => {
    const files = ['a/x/note.md', 'b/x/note.md', 'c/y/note.md', 'c/other.md', './c/other.md'];
    expect(tellApart(files)).toEqual(['a/x/note.md', 'b/x/note.md', 'y/note.md', 'other.md', 'other.md']);
  });

  it('that Storage refuses for another reason than their size have its reason', () => {
    expect(whyRefused(1024 * 1024, 50 * 1024 * 1024, 'Gone')).toBe('Storage did not take it, of 1.0 MB: Gone.');
  });
});

describe('its arguments', () => {
  it('are any number of files', () => {
    expect(readArguments(['documents'])).toMatchObject({ demo: 'documents', files: [] });
    const given = readArguments(['documents', 'a.pdf', 'b.mp3', '--keep']);
    expect(given).toMatchObject({ demo: 'documents', files: ['a.pdf', 'b.mp3'], keep: true });
    expect(() => readArguments(['documents', '--url', 'https://example.com'])).toThrow('--url belongs to the leads');
  });

  it('are refused before anything is started, with the name of each file that cannot be read', async () => {
    const { code, stdout, stderr } = await runOn(['/nowhere/a.pdf', write('good.txt', 'Good.'), temporary]);
    expect(code).toBe(1);
    expect(stderr).toContain('/nowhere/a.pdf cannot be read: there is no such file');
    expect(stderr).toContain(`${temporary} cannot be read: it is a folder`);
    expect(stderr).not.toContain('good.txt');
    expect(stdout).not.toContain('Starting the stack');
  });
});

describe('its settings', () => {
  it('pass over services elsewhere, which could not reach this machine’s Storage, and say so', () => {
    const given = { OCR_URL: 'https://ocr.example', DEEPGRAM_URL: 'https://api.deepgram.com', DEEPGRAM_API_KEY: 'x' };
    const { env, warnings } = demoSettings(given, 'documents');
    expect(Object.keys(env).filter((name) => name in given)).toEqual([]);
    expect(warnings.join()).toMatch(/OCR_URL is ignored.*DEEPGRAM_URL is ignored/);
  });

  it('send documents the new way and cost nothing, unless the user says otherwise', () => {
    const free = { USE_NEW_PIPELINE: 'true', LLM_PRICE_INPUT: '0', LLM_PRICE_OUTPUT: '0', DEEPGRAM_PRICE_MINUTE: '0' };
    expect(demoSettings({}, 'documents').env).toEqual(free);
    const given = { USE_NEW_PIPELINE: 'false', LLM_PRICE_INPUT: '0.25' };
    expect(demoSettings(given, 'documents').env).toEqual({ ...free, ...given });
  });
});

describe('its table', () => {
  const document: DocumentProgress = {
    name: 'a.pdf',
    statuses: { extraction: 'completed', chunking: 'completed', kg_ingest: 'started' },
    chunks: { kg_ingest: { done: 3, failed: 0, all: 7 } },
    monolith: null,
  };
  const table = (documents: DocumentProgress[]) =>
    documentsTable(documents, 1250).map((line) => stripVTControlCharacters(line).trimEnd());

  it('shows each document’s phases, and how many of its chunks have been read', () => {
    expect(table([document])).toEqual([
      '  document  extraction        chunking          kg_ingest',
      '  a.pdf     completed         completed         started 3/7',
      '  1.3 s',
    ]);
  });

  it('has a column for every phase there is, and counts failed chunks apart', () => {
    const statuses = { ...document.statuses, kg_ingest: 'failed', summary: 'queued' };
    const chunks = { kg_ingest: { done: 35, failed: 12, all: 47 } };
    expect(table([{ ...document, statuses, chunks }]).slice(0, 2)).toEqual([
      '  document  extraction        chunking          kg_ingest                summary',
      '  a.pdf     completed         completed         failed 35/47, 12 failed  queued',
    ]);
  });

  it('shows what goes the old way, and keeps its width at long names', () => {
    const pending = { extraction: 'pending', chunking: 'pending', kg_ingest: 'pending' };
    const name = `${'long-'.repeat(20)}name.pdf`;
    const [, row = ''] = table([{ name, statuses: pending, chunks: {}, monolith: 'started' }]);
    expect(row).toMatch(/^ {2}(long-)+.*…-name\.pdf +started, all in one call$/);
    expect(row.length).toBeLessThan(80);
  });
});
