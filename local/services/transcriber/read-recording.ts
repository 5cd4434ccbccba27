import type { IAudioMetadata } from 'music-metadata';
import { decodeText } from '../../../supabase/functions/_services/text/decode-text.ts';
import { ApiError } from './api-error.ts';

/** The metadata of a sound or video file. */
export interface Recording {
  seconds: number;
  channels: number;
  /** The words its metadata carries: the lyrics, or else the comment. Empty without either. */
  transcript: string;
  language: string | undefined;
}

/** Reads a sound or video file's metadata. Rejects with an ApiError when it is none, or has no sound in it. */
export async function readRecording(bytes: Uint8Array): Promise<Recording> {
  const { format, common } = await parse(bytes);
  const seconds = format.duration ?? 0;
  if (seconds <= 0 || format.hasAudio === false) throw unreadable();
  const isRiff = format.container === 'WAVE';
  const texts = [...(common.lyrics ?? []), ...(common.comment ?? [])].map(({ text }) => text?.trim() ?? '');
  const transcript = texts.find(Boolean) ?? '';
  return {
    seconds,
    channels: format.numberOfChannels ?? 1,
    // RIFF names no encoding, and is read as Latin-1.
    transcript: isRiff ? decodeText(Buffer.from(transcript, 'latin1')).text : transcript,
    language: common.language,
  };
}

async function parse(bytes: Uint8Array): Promise<IAudioMetadata> {
  // Loads the library here, because most stacks read no recording.
  const { parseBuffer } = await import('music-metadata');
  try {
    return await parseBuffer(bytes, undefined, { duration: true, skipCovers: true });
  } catch {
    throw unreadable();
  }
}

function unreadable(): ApiError {
  return new ApiError(400, 'Bad Request', 'Bad Request: failed to process audio: corrupt or unsupported data');
}
