/** The drawing steps of a page, in the order of pdf.js. */
export interface DrawingSteps {
  fnArray: number[];
  argsArray: unknown[];
}

export type Matrix = [number, number, number, number, number, number];

interface Level {
  matrix: Matrix;
  /** Whether something was drawn since the level was opened. */
  drawn: boolean;
}

const shapes = [
  ...['stroke', 'closeStroke', 'fill', 'eoFill', 'fillStroke', 'eoFillStroke', 'closeFillStroke', 'closeEOFillStroke'],
  ...['shadingFill', 'rawFillPath'],
];
const drawing = [...shapes, 'showText', 'showSpacedText', 'nextLineShowText', 'nextLineSetSpacingShowText'];
const nearlyAll = 0.8;
// Levels that only set something are places of one unit square, too.
const hardlyAny = 0.001;

/**
 * Whether images cover nearly the whole page. The images must have been left out while the steps were made
 * (maxImageSize 0). Such an image leaves only its place: a square of one unit, enlarged to the image's size, on which
 * nothing is drawn.
 *
 * @param view the page's [x0, y0, x1, y1].
 * @param ops OPS of pdf.js.
 */
export function coversPage(steps: DrawingSteps, view: number[], ops: Record<string, number>): boolean {
  return shareOfImages(steps, view, ops) >= nearlyAll;
}

/** Whether the page has a shape or an image of more than a speck; text is not looked at. Takes what coversPage takes. */
export function isDrawnOn(steps: DrawingSteps, view: number[], ops: Record<string, number>): boolean {
  const draws = new Set(shapes.map((name) => ops[name]));
  const hasShape = steps.fnArray.some((op, at) => draws.has(op) || isDrawnPath(op, steps.argsArray[at], ops));
  return hasShape || shareOfImages(steps, view, ops) > hardlyAny;
}

function isDrawnPath(op: number, args: unknown, ops: Record<string, number>): boolean {
  return op === ops.constructPath && (args as ArrayLike<unknown>)[0] !== ops.endPath;
}

/** The share of the page that images cover; those that lie upon one another count twice. */
function shareOfImages({ fnArray, argsArray }: DrawingSteps, view: number[], ops: Record<string, number>): number {
  const draws = new Set(drawing.map((name) => ops[name]));
  let level: Level = { matrix: [1, 0, 0, 1, 0, 0], drawn: false };
  const outer: Level[] = [];
  let covered = 0;
  const open = (matrix: Matrix) => {
    outer.push(level);
    level = { matrix, drawn: false };
  };
  const close = () => {
    if (!level.drawn) covered += areaOnPage(level.matrix, view);
    // An image stands in one level alone, not in those around it as well.
    level = { ...(outer.pop() ?? level), drawn: true };
  };
  for (const [index, op] of fnArray.entries()) {
    const args = (argsArray[index] ?? []) as ArrayLike<unknown>;
    if (op === ops.save) open(level.matrix);
    else if (op === ops.paintFormXObjectBegin) open(args[0] ? multiply(level.matrix, args[0]) : level.matrix);
    else if (op === ops.restore || op === ops.paintFormXObjectEnd) close();
    else if (op === ops.transform) level.matrix = multiply(level.matrix, args);
    else if (draws.has(op) || isDrawnPath(op, args, ops)) level.drawn = true;
  }
  for (let left = outer.length; left >= 0; left--) close();
  const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = view;
  return covered / Math.abs((x1 - x0) * (y1 - y0));
}

/** The area of the unit square under the matrix, as far as it lies on the page. */
function areaOnPage([a, b, c, d, e, f]: Matrix, view: number[]): number {
  const width = overlap([e, e + a, e + c, e + a + c], view[0] ?? 0, view[2] ?? 0);
  const height = overlap([f, f + b, f + d, f + b + d], view[1] ?? 0, view[3] ?? 0);
  return Math.min(width * height, Math.abs(a * d - b * c));
}

function overlap(corners: number[], low: number, high: number): number {
  return Math.max(0, Math.min(high, Math.max(...corners)) - Math.max(low, Math.min(...corners)));
}

export function multiply([a, b, c, d, e, f]: Matrix, by: unknown): Matrix {
  const [g, h, i, j, k, l] = Array.from(by as ArrayLike<number>) as Matrix;
  return [a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * l + e, b * k + d * l + f];
}
