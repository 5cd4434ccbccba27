// Where the contract of Deepgram's API is tested: on the stand-in, or on the real service if DEEPGRAM_API_KEY holds a key
// of it (and DEEPGRAM_URL, where it is not Deepgram's own), so that the two can be compared. The call costs a few seconds of
// transcription.
import { startTranscriber } from '../../local/services/transcriber/server.ts';

export interface TranscriberTarget {
  url: string;
  key: string;
  stop(): Promise<void>;
}

export async function startTranscriberTarget(): Promise<TranscriberTarget> {
  const { DEEPGRAM_API_KEY: given, DEEPGRAM_URL: url = 'https://api.deepgram.com' } = process.env;
  if (given) return { url, key: given, stop: async () => {} };
  const key = 'the-key';
  const standIn = await startTranscriber({ env: { DEEPGRAM_API_KEY: key } });
  return { ...standIn, key };
}
