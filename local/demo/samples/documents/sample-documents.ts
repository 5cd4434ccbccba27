// The sample documents: what several parties write about one canal, each in a file of another type.
import fs from 'node:fs';
import path from 'node:path';
import { scanPage } from '../books/scan-page.ts';
import { readBlocks } from './read-blocks.ts';
import { buildSampleDocx } from './sample-docx.ts';
import { buildSamplePdf } from './sample-pdf.ts';
import { buildSampleWav } from './sample-wav.ts';
import { setPages } from './set-pages.ts';

/** A file to upload. */
export interface DocumentFile {
  name: string;
  bytes: Uint8Array;
  mediaType: string;
}

/** Builds the sample documents, in under two seconds; the same bytes each time. */
export async function sampleDocuments(): Promise<DocumentFile[]> {
  const scanned = { pieces: setPages(readBlocks(text('notice.md'))).flat(), lines: [] };
  return [
    {
      name: 'restoration-report.pdf',
      bytes: await buildSamplePdf('Third Report on the Restoration', readBlocks(text('report.md'))),
      mediaType: 'application/pdf',
    },
    {
      name: 'council-minutes.docx',
      bytes: buildSampleDocx(readBlocks(text('minutes.md'))),
      mediaType: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    },
    { name: 'newsletter.html', bytes: file('newsletter.html'), mediaType: 'text/html' },
    { name: 'lock-survey.md', bytes: file('lock-survey.md'), mediaType: 'text/markdown' },
    { name: 'notice-board.jpg', bytes: new Uint8Array(await scanPage(scanned, 1)), mediaType: 'image/jpeg' },
    { name: 'site-meeting.wav', bytes: buildSampleWav(text('site-meeting.txt').trim()), mediaType: 'audio/wav' },
  ];
}

function file(name: string): Uint8Array {
  return new Uint8Array(fs.readFileSync(path.join(import.meta.dirname, 'wendle-canal', name)));
}

function text(name: string): string {
  return new TextDecoder().decode(file(name));
}
