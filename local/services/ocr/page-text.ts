import type { JobErrorCode } from '../http/job-error.ts';

/** A box as [x0, y0, x1, y1] from the top left corner. */
export type Box = [number, number, number, number];

/** The text that was read on a page. Lengths are in points (1/72 inch) of a PDF's page, in pixels of an image. */
export interface PageText {
  page: number;
  width: number;
  height: number;
  /** The lines, parted by \n, with an empty line between blocks; empty when the page is. */
  text: string;
  /** How sure the reading is, from 0 to 1; 0 when there is none. */
  confidence: number;
  lines: { text: string; confidence: number; bbox: Box }[];
}

/** Why a document's page could not be read. */
export class PageFault extends Error {
  constructor(
    readonly code: JobErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'PageFault';
  }
}
