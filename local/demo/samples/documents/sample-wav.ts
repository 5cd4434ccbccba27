// A recording without a voice: a tone for each word, and the words as the comment of the file.

const samplesPerSecond = 8000;
const secondsPerWord = 0.12;
/** Hertz, one after the other. */
const tones = [220, 247, 262, 294, 330, 349, 392];

/** Returns a WAV file of tones, which carries what would be said in the chunk ICMT of its RIFF INFO; the same bytes each time. */
export function buildSampleWav(spoken: string): Uint8Array {
  const words = spoken.split(/\s+/).length;
  const samples = Buffer.alloc(Math.round(words * secondsPerWord * samplesPerSecond) * 2);
  for (let n = 0; n < samples.length / 2; n += 1) {
    const seconds = n / samplesPerSecond;
    const word = Math.floor(seconds / secondsPerWord);
    const loudness = Math.sin((Math.PI * (seconds % secondsPerWord)) / secondsPerWord);
    const tone = tones[(word * 3) % tones.length] as number;
    samples.writeInt16LE(Math.round(6000 * loudness * Math.sin(2 * Math.PI * tone * seconds)), n * 2);
  }
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0); // PCM
  format.writeUInt16LE(1, 2); // one channel
  format.writeUInt32LE(samplesPerSecond, 4);
  format.writeUInt32LE(samplesPerSecond * 2, 8);
  format.writeUInt16LE(2, 12);
  format.writeUInt16LE(16, 14);
  const comment = chunk('ICMT', Buffer.from(`${spoken}\0`));
  const info = chunk('LIST', Buffer.concat([Buffer.from('INFO'), comment]));
  const contents = [Buffer.from('WAVE'), chunk('fmt ', format), info, chunk('data', samples)];
  return chunk('RIFF', Buffer.concat(contents));
}

/** Chunks begin at even places. */
function chunk(name: string, data: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(data.length);
  return Buffer.concat([Buffer.from(name), size, data, Buffer.alloc(data.length % 2)]);
}
