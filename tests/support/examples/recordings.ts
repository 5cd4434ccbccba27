// Small recordings of silence, whose metadata may say what was spoken.

/** A WAV file of `seconds` of silence, with `transcript` as its comment. */
export function wavOf(seconds: number, transcript?: string, encoding: BufferEncoding = 'utf8'): Buffer {
  const rate = 8000;
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(rate, 4);
  format.writeUInt32LE(rate * 2, 8);
  format.writeUInt16LE(2, 12);
  format.writeUInt16LE(16, 14);
  const comment =
    transcript === undefined
      ? []
      : [riffChunk('LIST', [Buffer.from('INFO'), riffChunk('ICMT', [Buffer.from(`${transcript}\0`, encoding)])])];
  const sound = riffChunk('data', [Buffer.alloc(Math.round(seconds * rate) * 2)]);
  return riffChunk('RIFF', [Buffer.from('WAVE'), riffChunk('fmt ', [format]), ...comment, sound]);
}

/** An MP3 file of about `seconds` of silence, with `lyrics` and a comment in its ID3 tag. */
export function mp3Of(seconds: number, lyrics: string, comment: string): Buffer {
  // 128 kbit/s and 44.1 kHz: 417 bytes and 26 ms a frame.
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xfffb9000);
  const frames = Array<Buffer>(Math.ceil((seconds * 44_100) / 1152)).fill(frame);
  const tag = Buffer.concat([id3Frame('COMM', comment), id3Frame('USLT', lyrics), id3Frame('TLAN', 'en')]);
  const header = Buffer.from('ID3\u0003\0\0\0\0\0\0', 'latin1');
  for (const [index, shift] of [21, 14, 7, 0].entries()) header[6 + index] = (tag.length >> shift) & 0x7f;
  return Buffer.concat([header, tag, ...frames]);
}

function riffChunk(id: string, parts: Buffer[]): Buffer {
  const data = Buffer.concat(parts);
  const head = Buffer.alloc(8);
  head.write(id, 'latin1');
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
}

function id3Frame(id: string, text: string): Buffer {
  // Latin-1; comments and lyrics have a language and a description too.
  const before = id.startsWith('T') ? '\0' : '\0eng\0';
  const data = Buffer.from(before + text, 'latin1');
  const head = Buffer.alloc(10);
  head.write(id, 'latin1');
  head.writeUInt32BE(data.length, 4);
  return Buffer.concat([head, data]);
}
