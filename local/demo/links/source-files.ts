// The sheet and the data source of the demo, as the stand-ins of Google Sheets and Notion serve them from a folder.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readFileNamed } from '../read-file.ts';
import type { SampleLink, Samples } from './sample-links.ts';

/** A source as the demo adds it. */
export interface DemoSource {
  kind: 'sheet' | 'notion';
  address: string;
  column: string | null;
}

const dataSource = 'e1cdf0a2b3c44d5e8f60718293a4b5c6';

/** A folder of its own, which goes when `remove` is called. */
export function sourcesFolder(): { folder: string; remove(): void } {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-demo-sources-'));
  return { folder, remove: () => fs.rmSync(folder, { recursive: true, force: true }) };
}

/** Writes the samples: one list as a sheet, the other as a data source. */
export function writeSamples(folder: string, { sheet, pages }: Samples): DemoSource[] {
  fs.writeFileSync(path.join(folder, 'open-jobs.csv'), csvOf(sheet));
  const content = { name: 'Clipped', pages: pages.map(pageOf) };
  fs.writeFileSync(path.join(folder, `${dataSource}.json`), JSON.stringify(content));
  return [
    { kind: 'sheet', address: 'https://docs.google.com/spreadsheets/d/open-jobs/edit', column: 'Link' },
    { kind: 'notion', address: `collection://${dataSource}`, column: 'Link' },
  ];
}

/** Serves a file of the user's as a sheet. Throws an error that names the file where it cannot be read. */
export function copySheet(folder: string, file: string): DemoSource {
  fs.writeFileSync(path.join(folder, 'your-sheet.csv'), readFileNamed(file, 'Name a CSV file behind --sheet.'));
  return { kind: 'sheet', address: 'https://docs.google.com/spreadsheets/d/your-sheet/edit', column: null };
}

function csvOf(links: SampleLink[]): string {
  const rows = links.map(({ link, note }, index) => [String(index + 1), link, note]);
  return [['No', 'Link', 'Note'], ...rows].map((row) => `${row.map(field).join(',')}\n`).join('');
}

function field(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function pageOf({ link, note }: SampleLink, index: number) {
  const id = `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`;
  const created_time = `2026-11-01T08:${String(index % 60).padStart(2, '0')}:00.000Z`;
  return { id, created_time, properties: { Name: note, Link: link } };
}
