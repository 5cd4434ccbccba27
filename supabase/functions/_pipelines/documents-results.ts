import { z } from 'zod';

// The results of the stages of `documents`. The text itself lies in Storage: stages pass on only its location.

/** Where an extracted text lies: bucket and name in Storage, and a hash that shows whether it is still the same. */
export const textLocation = z.object({
  /** extracted_text/ID.txt. Pages of a paged source are parted by \f, headings are those of Markdown (#). */
  text_location: z.string().min(1),
  /** Of the text as UTF-8, in hexadecimal. */
  text_sha256: z.string().length(64),
  /** UTF-16 code units, as JavaScript counts them. */
  characters: z.int().positive(),
});
export type TextLocation = z.output<typeof textLocation>;

/** How a text was come by. */
export const extractor = z.enum(['pdf', 'docx', 'html', 'markdown', 'plain_text', 'transcription', 'ocr']);
export type Extractor = z.output<typeof extractor>;

/** Parts of a document that its text lacks. */
export const partlyRead = z.object({
  /** Letters that nothing in the file tells: each is U+FFFD in the text, but for those of fonts that cannot be opened. */
  unread_letters: z.int().nonnegative(),
  /** Of so many letters. */
  letters: z.int().nonnegative(),
  /** Letters that may be others, or stand in another order: of joined scripts or old fonts for which the file gives no text. */
  doubtful_letters: z.int().nonnegative().optional(),
  /** The first 100 pages with such letters, from 1; empty for a source without pages. */
  pages: z.array(z.int().positive()),
  /** The first 100 pages that are pictures without text. */
  picture_pages: z.array(z.int().positive()),
  /** Pages that were not read, since the text had reached its bound before them. */
  missing_pages: z.object({ from: z.int().positive(), to: z.int().positive() }).optional(),
});
export type PartlyRead = z.output<typeof partlyRead>;

export const extractionResult = textLocation.extend({
  by: extractor,
  /** By the file's content, such as application/pdf. */
  media_type: z.string(),
  source_bytes: z.int().positive(),
  /** Of a source that has pages, else null. */
  pages: z.int().positive().nullable(),
  /** Of audio and video, else null. */
  duration_seconds: z.number().positive().nullable(),
  /** Given where parts of the document are missing from the text. */
  partly_read: partlyRead.optional(),
  /** The same in sentences, which the operator's page shows. */
  doubts: z.array(z.string()).optional(),
  /** Given where nothing but its bytes told the charset of a text, such as shift_jis. */
  guessed_charset: z.string().optional(),
});
export type ExtractionResult = z.output<typeof extractionResult>;

export const chunkingResult = z.object({
  chunks: z.int().positive(),
  /** Of all chunks, what overlaps counted twice. */
  tokens: z.int().positive(),
  /** The chunks as the Data API serves them. */
  output_location: z.string(),
});
export type ChunkingResult = z.output<typeof chunkingResult>;
