// A folder of spreadsheets and data sources, and the stand-ins that serve it.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startNotion } from '../../../local/services/notion/server.ts';
import { startSheets } from '../../../local/services/sheets/server.ts';

export type Failing = { status: number; headers?: Record<string, string> } | undefined;

/** Starts both. The answer that `failNext` is given answers the next requests, one each; `asked` lists the paths of all requests. */
export async function serveSources(options: { most?: number } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-sources-'));
  const asked: string[] = [];
  let failures: Failing[] = [];
  const fail = (asking: string) => {
    asked.push(asking);
    return asking === '/token' ? undefined : failures.shift();
  };
  const sheets = await startSheets({ folder, fail });
  const notion = await startNotion({ folder, token: 'secret', fail, ...options });
  return {
    sheets,
    notion,
    asked,
    write: (name: string, content: string | object) =>
      fs.writeFileSync(path.join(folder, name), typeof content === 'string' ? content : JSON.stringify(content)),
    remove: (name: string) => fs.rmSync(path.join(folder, name)),
    failNext: (...next: Failing[]) => {
      failures = next;
    },
    stop: async () => {
      await Promise.all([sheets.stop(), notion.stop()]);
      fs.rmSync(folder, { recursive: true });
    },
  };
}
