/** The type and the size of a picture, from its first bytes. */
export interface PictureHeader {
  type: 'jpeg' | 'png';
  width: number;
  height: number;
}

const pngMark = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
// Frames of JPEG that a reader can show: baseline, extended and progressive ones.
const frames = new Set([0xc0, 0xc1, 0xc2]);

/**
 * Reads type and size of a JPEG or PNG from its beginning, whatever its name and its server say. Null for anything else, and where
 * the size stands further behind.
 */
export function readPictureHeader(head: Uint8Array): PictureHeader | null {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (pngMark.every((byte, at) => head[at] === byte)) {
    if (head.length < 24) return null;
    return { type: 'png', width: view.getUint32(16), height: view.getUint32(20) };
  }
  if (head[0] !== 0xff || head[1] !== 0xd8) return null;
  for (let at = 2; at + 9 < head.length; ) {
    if (head[at] !== 0xff) return null;
    const marker = head[at + 1] ?? 0;
    // Before a marker any number of these may stand.
    if (marker === 0xff) at += 1;
    else if (frames.has(marker)) return { type: 'jpeg', height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    else if (marker >= 0xd0 && marker <= 0xd8) at += 2;
    else at += 2 + view.getUint16(at + 2);
  }
  return null;
}
