import { createHash } from 'node:crypto';
import type { ListenQuery } from './listen-query.ts';
import type { Recording } from './read-recording.ts';

const modelId = '00000000-0000-4000-8000-000000000000';
const modelInfo = { [modelId]: { name: 'embedded-transcript', version: '1', arch: 'stand-in' } };
const silence = {
  parameter: 'model',
  type: 'stand_in',
  message:
    'The local stand-in cannot hear: it reads the transcript that a file carries in its lyrics or comment, and this one ' +
    'carries none. For the real service set DEEPGRAM_URL=https://api.deepgram.com and DEEPGRAM_API_KEY, in a project ' +
    'whose Storage and functions it can reach.',
};

/** Returns the answer to a request, in the form of Deepgram's, from what the recording says of itself. */
export function transcriptionOf(recording: Recording, bytes: Uint8Array, query: ListenQuery, requestId: string) {
  const { seconds, channels, transcript, language } = recording;
  const paragraphs = spreadOver(seconds, transcript);
  const words = paragraphs.flatMap(({ sentences }) => sentences.flatMap((sentence) => sentence.words));
  const isSilent = words.length === 0;
  return {
    metadata: {
      transaction_key: 'deprecated',
      request_id: requestId,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      created: new Date().toISOString(),
      duration: seconds,
      channels,
      models: [modelId],
      model_info: modelInfo,
      ...(Object.keys(query.extra).length > 0 ? { extra: query.extra } : {}),
      ...(isSilent ? { warnings: [silence] } : {}),
    },
    results: {
      channels: [
        {
          alternatives: [
            {
              transcript: words.map((word) => (query.punctuate ? word.text : bare(word.text))).join(' '),
              confidence: isSilent ? 0 : 1,
              words: words.map(({ text, start, end }) => ({
                word: bare(text),
                start,
                end,
                confidence: 1,
                ...(query.punctuate ? { punctuated_word: text } : {}),
              })),
              ...(query.paragraphs ? { paragraphs: paragraphsObject(paragraphs) } : {}),
            },
          ],
          // Only a file that says so: it cannot be heard.
          ...(query.detectLanguage && language ? { detected_language: language, language_confidence: 1 } : {}),
        },
      ],
    },
  };
}

interface Sentence {
  text: string;
  words: { text: string; start: number; end: number }[];
}

/** Paragraphs, their sentences and words, each word as long as any other. */
function spreadOver(seconds: number, transcript: string): { sentences: Sentence[] }[] {
  const count = transcript.split(/\s+/).filter(Boolean).length;
  const secondsAt = (index: number) => Math.round((seconds * index * 1000) / count) / 1000;
  let at = 0;
  const toWord = (text: string) => ({ text, start: secondsAt(at), end: secondsAt(++at) });
  const toSentence = (text: string): Sentence => {
    const words = text.split(/\s+/).filter(Boolean);
    return { text: words.join(' '), words: words.map(toWord) };
  };
  return transcript
    .split(/\n\s*\n/)
    .filter((paragraph) => paragraph.trim() !== '')
    .map((paragraph) => ({
      sentences: paragraph
        .trim()
        .split(/(?<=[.!?…]["'”’)]*)\s+/)
        .map(toSentence),
    }));
}

function paragraphsObject(paragraphs: { sentences: Sentence[] }[]) {
  const texts = paragraphs.map(({ sentences }) => sentences.map(({ text }) => text).join(' '));
  return {
    transcript: texts.length > 0 ? `\n${texts.join('\n\n')}` : '',
    paragraphs: paragraphs.map(({ sentences }) => {
      const words = sentences.flatMap((sentence) => sentence.words);
      return {
        sentences: sentences.map(({ text, words }) => ({ text, ...timesOf(words) })),
        num_words: words.length,
        ...timesOf(words),
      };
    }),
  };
}

function timesOf(words: Sentence['words']): { start: number; end: number } {
  return { start: words[0]?.start ?? 0, end: words.at(-1)?.end ?? 0 };
}

/** Returns a word as it is without the punctuation around it. */
function bare(word: string): string {
  return word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '') || word;
}
