import { createCanvas } from '@napi-rs/canvas';

/** A picture as the site sends it. */
export interface Picture {
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const [width, height] = [1200, 800];

/** Returns the picture of that name, or null where there is none. Pictures of articles are drawn; three are traps. */
export function picture(name: string): Picture | null {
  if (name === 'lost.jpg') return null;
  if (name === 'emblem.svg') {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="400"><circle cx="300" cy="200" r="150"/></svg>';
    return { type: 'image/svg+xml', bytes: new TextEncoder().encode(svg) };
  }
  if (name === 'not-a-picture.jpg') {
    return { type: 'image/jpeg', bytes: new TextEncoder().encode('<html><body>Please sign in.</body></html>') };
  }
  const drawn = drawJpeg(name);
  return { type: 'image/jpeg', bytes: name === 'panorama.jpg' ? enlarged(drawn) : drawn };
}

/** Soft stripes and discs whose colours and places come from the name: the same bytes each time. */
function drawJpeg(name: string): Uint8Array<ArrayBuffer> {
  const seed = [...name].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973, 7);
  const canvas = createCanvas(width, height);
  const context = canvas.getContext('2d');
  context.fillStyle = `hsl(${seed % 360}, 45%, 78%)`;
  context.fillRect(0, 0, width, height);
  for (let at = 0; at < 9; at++) {
    context.fillStyle = `hsla(${(seed + at * 37) % 360}, 50%, 45%, 0.55)`;
    context.beginPath();
    context.arc((seed * (at + 3)) % width, (seed * (at + 5)) % height, 60 + ((seed * at) % 140), 0, 2 * Math.PI);
    context.fill();
  }
  return new Uint8Array(canvas.toBuffer('image/jpeg', 80));
}

/** Returns a JPEG whose header says that it has 108 million pixels: a decoder asks for the memory first. */
function enlarged(jpeg: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const view = new DataView(jpeg.buffer);
  // Segments follow one another until the frame header, whose fifth byte begins the height.
  let at = 2;
  while (at < jpeg.length - 9 && !isFrameHeader(view.getUint16(at))) at += 2 + view.getUint16(at + 2);
  view.setUint16(at + 5, 9_000);
  view.setUint16(at + 7, 12_000);
  return jpeg;
}

function isFrameHeader(marker: number): boolean {
  return marker >= 0xffc0 && marker <= 0xffc2;
}
