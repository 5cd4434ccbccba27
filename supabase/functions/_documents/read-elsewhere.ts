import { PermanentError } from '../_millrace/mod.ts';
import type { Extractor } from '../_pipelines/documents-results.ts';
import type { ReadPage } from '../_services/ocr.ts';
import { tidyText } from '../_services/text/tidy-text.ts';
import type { Transcript } from '../_services/transcription.ts';

/** The text of a file, as an external service read it. */
export interface ReadElsewhere {
  by: Extractor;
  text: string;
  pages: number | null;
  duration_seconds: number | null;
}

/** The text of a picture. Throws the PermanentError `no_text` for one without. */
export function pictureText(page: ReadPage): ReadElsewhere {
  const text = tidyText(page.text);
  if (text === '') {
    throw new PermanentError('no_text', 'The OCR service found no text in the picture: upload a sharper one.');
  }
  return { by: 'ocr', text, pages: 1, duration_seconds: null };
}

/** The text of a recording. */
export function spokenText({ text, durationSeconds }: Transcript): ReadElsewhere {
  return { by: 'transcription', text: tidyText(text), pages: null, duration_seconds: durationSeconds };
}
