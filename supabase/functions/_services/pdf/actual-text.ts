import type { ContentStreams, PaintedStream } from './content-streams.ts';
import type { DrawingSteps } from './pdf-images.ts';
import { joinedScripts, type PdfGlyph } from './pdf-letters.ts';

type Mark = 'none' | 'numbered' | 'free';

/** Glyphs that are painted by one content stream: the page's own, that of a form, or that of an annotation. */
interface Segment {
  /** As in a PaintedStream. */
  codes: string;
  glyphs: { glyph: PdfGlyph; at: number; mark: Mark; place: [step: number, index: number] }[];
}

/**
 * The same steps, with the text that the file gives for some glyphs (ActualText) at their first glyph, which pdf.js leaves out.
 * Glyphs are marked as doubtful where such a text cannot be found, and letters of joined scripts where a file has no such text.
 * `open` is only called for pages that have either. `share` is the page's place in the file, from 0 to 1.
 */
export async function withActualText(
  steps: DrawingSteps,
  ops: Record<string, number>,
  open: () => Promise<ContentStreams>,
  share: number,
): Promise<DrawingSteps> {
  const segments = segmentsOf(steps, ops).filter(({ glyphs }) =>
    glyphs.some(({ glyph, mark }) => mark !== 'none' || joinedScripts.test(glyph.unicode)),
  );
  if (segments.length === 0) return steps;
  const file = await open();
  const argsArray = [...steps.argsArray];
  const change = ({ glyph, place: [step, index] }: Segment['glyphs'][number], changed: Partial<PdfGlyph>) => {
    if (argsArray[step] === steps.argsArray[step]) argsArray[step] = [[...(steps.argsArray[step] as [PdfGlyph[]])[0]]];
    (argsArray[step] as [PdfGlyph[]])[0][index] = { ...glyph, ...changed };
  };
  for (const segment of segments) {
    const streams = file.find(segment.codes, share);
    const isFound = streams.reduce((sum, { codes }) => sum + codes.length, 0) >= segment.codes.length;
    const texts = textsOf(segment.codes, streams);
    const isTrusted = isFound && (texts.size > 0 || file.hasTexts());
    const mayHaveText = !isFound && (file.hasTexts() || !file.isWhole());
    for (const painted of segment.glyphs) {
      const text = texts.get(painted.at);
      if (text === null || (text === undefined && isDoubtful(painted, mayHaveText, isTrusted))) {
        change(painted, { isDoubtful: true });
      } else if (text !== undefined) change(painted, { actual: text });
    }
  }
  return { fnArray: steps.fnArray, argsArray };
}

function isDoubtful({ glyph, mark }: Segment['glyphs'][number], mayHaveText: boolean, isTrusted: boolean): boolean {
  return (mark === 'free' && mayHaveText) || (!isTrusted && joinedScripts.test(glyph.unicode));
}

/** The text of each replaced place in the codes of a segment: at the first one all of it, at others an empty one, null where unclear. */
function textsOf(codes: string, parts: readonly PaintedStream[]): Map<number, string | null> {
  const texts = new Map<number, string | null>();
  for (const part of parts) {
    const start = codes.indexOf(part.codes);
    // A page of several streams, of which one paints what stands in two places, does not tell which.
    const isOnce = codes.indexOf(part.codes, start + 1) < 0;
    for (const { from, to, text } of part.replacements) {
      for (let at = from; at < to; at++) {
        const here = isOnce && text ? (at === from ? text : '') : text === '' ? undefined : null;
        if (here === undefined) continue;
        const other = texts.get(start + at);
        texts.set(start + at, other === undefined || other === here ? here : null);
      }
    }
  }
  return texts;
}

function segmentsOf({ fnArray, argsArray }: DrawingSteps, ops: Record<string, number>): Segment[] {
  const segments: Segment[] = [{ codes: '', glyphs: [] }];
  const open = [segments[0] as Segment];
  const marks: Mark[] = [];
  for (const [step, op] of fnArray.entries()) {
    if (op === ops.paintFormXObjectBegin || op === ops.beginAnnotation) {
      const inner = { codes: '', glyphs: [] };
      segments.push(inner);
      open.push(inner);
    }
    if ((op === ops.paintFormXObjectEnd || op === ops.endAnnotation) && open.length > 1) open.pop();
    if (op === ops.beginMarkedContent) marks.push('none');
    if (op === ops.beginMarkedContentProps) marks.push(markOf(argsArray[step] as [string, unknown]));
    if (op === ops.endMarkedContent) marks.pop();
    if (op !== ops.showText) continue;
    const segment = open.at(-1) as Segment;
    const mark = marks.includes('free') ? 'free' : marks.includes('numbered') ? 'numbered' : 'none';
    for (const [index, glyph] of (argsArray[step] as [(PdfGlyph | number | null)[]])[0].entries()) {
      if (typeof glyph !== 'object' || !glyph) continue;
      segment.glyphs.push({ glyph, at: segment.codes.length, mark, place: [step, index] });
      segment.codes += bytesOf(glyph.originalCharCode);
    }
  }
  return segments;
}

/** Marked content with a number (MCID) belongs to the file's structure; without one it mostly has a text of its own. */
function markOf([tag, number]: [string, unknown]): Mark {
  if (tag === 'OC') return 'none';
  return typeof number === 'number' ? 'numbered' : 'free';
}

function bytesOf(code: number): string {
  let bytes = '';
  for (let rest = code; rest > 0; rest = Math.floor(rest / 256)) {
    if (rest % 256 > 0) bytes = String.fromCharCode(rest % 256) + bytes;
  }
  return bytes;
}
