import { z } from 'zod';

// The result of each stage of `pages`.

/** A line of a page. Lengths are in points of the page, from its top left corner; null where nobody knows them. */
export const pageLine = z.object({
  text: z.string(),
  /** Of the letters. */
  size: z.number().nullable(),
  /** Of the first letter; of a plain text the column. */
  x: z.number().nullable(),
  /** Of the base line; of a plain text the row. */
  y: z.number().nullable(),
});
export type PageLine = z.output<typeof pageLine>;

/** A page as one reader read it. */
export const reading = z.object({
  by: z.enum(['text_layer', 'ocr', 'plain_text']),
  /** From 0 to 1: how far it looks like text, or how sure the reader is. */
  confidence: z.number().min(0).max(1),
  lines: z.array(pageLine),
});
export type Reading = z.output<typeof reading>;

export const textLayerResult = reading.extend({
  /** Whether the text is too poor to do without the OCR service. */
  needs_ocr: z.boolean(),
});

export const ocrResult = reading;

export const blendResult = z.object({
  /** The lines, parted by \n. */
  text: z.string(),
  lines: z.array(pageLine),
  confidence: z.number().min(0).max(1),
  /** Who read the page, the one that was followed first. */
  readings: z.array(reading.shape.by).min(1),
  /** Words taken from the second reading. */
  replaced: z.number().int().min(0),
});
export type BlendResult = z.output<typeof blendResult>;

/** The parts of a page; null for a part that it lacks. The lines of no part are the body. */
export const labelResult = z.object({
  running_head: z.string().nullable(),
  /** The page number as it is printed, such as 12 or xii. */
  page_label: z.string().nullable(),
  headings: z.array(z.string()),
  /** The beginning of the first footnote. All that follows it belongs to the footnotes. */
  first_footnote: z.string().nullable(),
});
export type LabelResult = z.output<typeof labelResult>;
