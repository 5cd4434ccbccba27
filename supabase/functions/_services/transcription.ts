import { z } from 'zod';
import {
  authToken,
  type Env,
  type FinishContext,
  type HandlerContext,
  httpUrl,
  messageOf,
  ownCallbackUrl,
  PermanentError,
  parseJson,
  price,
  RetriableError,
  readSettings,
  type Service,
  storableText,
  type Traced,
  traceHeaders,
  type Usage,
} from '../_millrace/mod.ts';
import { readRefusal, refusalError } from './transcription-errors.ts';

/** Where the transcription service is and what it costs. */
export const transcriptionSettings = z.object({
  DEEPGRAM_URL: httpUrl
    .default('https://api.deepgram.com')
    .describe('set the base URL of an API that answers as Deepgram’s does, or remove it to use Deepgram’s own'),
  DEEPGRAM_API_KEY: authToken.describe('set a key of the transcription service, from https://console.deepgram.com'),
  DEEPGRAM_MODEL: z.string().default('nova-3'),
  DEEPGRAM_PRICE_MINUTE: price('a minute of sound', '0.0043')
    .optional()
    .describe('set US dollars for a minute of sound, or remove it'),
});

/** Deepgram, or what answers as it does. It cannot be asked for a result. */
export const transcription: Service = { name: 'transcription', settings: transcriptionSettings, readCallback };

/** The context of a request. */
export interface TranscriptionContext extends Traced {
  env: Env;
  signal: AbortSignal;
  /** Names the submission in the service's own records. It keeps nobody from buying twice: the API knows no such key. */
  submissionKey: string;
}

/** The text of a recording. */
export interface Transcript {
  /** The paragraphs, parted by blank lines; never empty. */
  text: string;
  paragraphs: Paragraph[];
  durationSeconds: number;
  /** A tag such as en or de-CH; null when it was not detected. */
  language: string | null;
}

export interface Paragraph {
  text: string;
  startSeconds: number;
  endSeconds: number;
}

const text = z.string().transform(storableText);
const seconds = z.number().nonnegative();

const paragraphSchema = z.object({ sentences: z.array(z.object({ text })), start: seconds, end: seconds });
const alternativeSchema = z.object({
  transcript: text,
  /** Missing for languages that part no words by spaces. */
  paragraphs: z.object({ paragraphs: z.array(paragraphSchema) }).nullish(),
});
const transcriptionSchema = z.object({
  metadata: z.object({
    duration: seconds,
    model_info: z
      .record(z.string(), z.object({ name: z.string() }))
      .optional()
      .catch(undefined),
    warnings: z
      .array(z.object({ message: z.string() }))
      .optional()
      .catch(undefined),
  }),
  results: z.object({
    channels: z.array(z.object({ detected_language: text.optional(), alternatives: z.array(alternativeSchema) })),
  }),
});
type Transcription = z.output<typeof transcriptionSchema>;

// Deepgram's pre-recorded API, https://developers.deepgram.com/docs/pre-recorded-audio. Its SDK brings far more than this
// one request, and retries where the engine should.

/**
 * Has audio transcribed; the service calls back when it has ended. `audioUrl` is audio or video as the service can download
 * it: a signed URL of Storage that outlives the job. Returns the request's id, which is the job's. The API has no
 * idempotency key and cannot be asked for a result: a function that dies between submission and waiting may buy a second
 * transcription, and a callback that never comes is ended by the stage's deadline. Throws a StageError.
 *
 * @example
 * ```ts
 * async function hear(context: HandlerContext): Promise<Waiting> {
 *   return waiting(transcription, await submitTranscription(entity.audio_url, context));
 * }
 * ```
 */
export async function submitTranscription(audioUrl: string, context: HandlerContext): Promise<string> {
  const answer = await listen(audioUrl, context, { callback: ownCallbackUrl(transcription, context) });
  const accepted = z.object({ request_id: z.string().min(1) }).safeParse(answer);
  if (accepted.success) return accepted.data.request_id;
  throw new RetriableError('server_error', 'The transcription service answered without a request_id.');
}

/**
 * Has audio transcribed and waits for it: for short recordings only, since the service may take ten minutes. Reports
 * usage; throws a StageError.
 *
 * @example
 * ```ts
 * const { text, language } = await transcribeNow(entity.audio_url, context);
 * ```
 */
export async function transcribeNow(
  audioUrl: string,
  context: TranscriptionContext & Pick<FinishContext, 'reportUsage'>,
): Promise<Transcript> {
  return transcriptOfJob(await listen(audioUrl, context, {}), context);
}

const requestId = z.string().min(1);
const callbackSchema = z.union([
  z.object({ metadata: z.object({ request_id: requestId }) }).transform(({ metadata }) => metadata.request_id),
  z.object({ request_id: requestId, err_code: z.string() }).transform((refusal) => refusal.request_id),
]);

function readCallback(body: unknown) {
  const jobId = callbackSchema.safeParse(body);
  if (jobId.success) return { jobId: jobId.data, job: body };
  throw new PermanentError('bad_callback', 'The body has no metadata.request_id, as a transcription has.');
}

/**
 * Turns a callback's body into what was said, and reports usage. Throws a permanent error for a recording without
 * speech (`no_speech`), which is paid for all the same, and for a body of another form.
 *
 * @example
 * ```ts
 * const { text, durationSeconds } = transcriptOfJob(job, finishContext);
 * ```
 */
export function transcriptOfJob(job: unknown, context: Pick<FinishContext, 'env' | 'reportUsage'>): Transcript {
  const refusal = readRefusal(job);
  if (refusal) throw refusalError(400, refusal);
  const parsed = transcriptionSchema.safeParse(job);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue?.path.join('.') || 'the top';
    throw new PermanentError(
      'invalid_output',
      `The transcription service's answer is wrong at ${where}: ${issue?.message}`,
    );
  }
  context.reportUsage(usageOf(parsed.data, context.env));
  return readTranscript(parsed.data);
}

function readTranscript({ metadata, results }: Transcription): Transcript {
  const { duration, warnings = [] } = metadata;
  const [channel] = results.channels;
  const spoken = channel?.alternatives[0];
  const whole = { text: spoken?.transcript.trim() ?? '', startSeconds: 0, endSeconds: duration };
  const parts = (spoken?.paragraphs?.paragraphs ?? []).map(({ sentences, start, end }) => ({
    text: sentences
      .map((sentence) => sentence.text)
      .join(' ')
      .trim(),
    startSeconds: start,
    endSeconds: end,
  }));
  const paragraphs = (parts.length > 0 ? parts : [whole]).filter((paragraph) => paragraph.text !== '');
  if (paragraphs.length === 0) {
    const said = [
      `No speech was found in ${Math.round(duration)} seconds of sound.`,
      ...warnings.map((w) => w.message),
    ];
    throw new PermanentError('no_speech', said.join(' '));
  }
  return {
    text: paragraphs.map((paragraph) => paragraph.text).join('\n\n'),
    paragraphs,
    durationSeconds: duration,
    language: channel?.detected_language ?? null,
  };
}

function usageOf({ metadata: { duration, model_info: models = {} } }: Transcription, env: Env): Usage {
  const { DEEPGRAM_MODEL: asked, DEEPGRAM_PRICE_MINUTE: price } = readSettings(transcriptionSettings, env);
  return {
    model: Object.values(models)[0]?.name ?? asked,
    input_tokens: null,
    output_tokens: null,
    audio_seconds: duration,
    cost_usd: price === undefined ? null : (duration / 60) * price,
  };
}

async function listen(
  audioUrl: string,
  { env, signal, submissionKey, traceId, submission }: TranscriptionContext,
  more: Record<string, string>,
): Promise<unknown> {
  const { DEEPGRAM_URL, DEEPGRAM_API_KEY, DEEPGRAM_MODEL } = readSettings(transcriptionSettings, env);
  const query = new URLSearchParams({
    model: DEEPGRAM_MODEL,
    smart_format: 'true',
    paragraphs: 'true',
    detect_language: 'true',
    extra: `idempotency_key:${submissionKey}`,
    ...more,
  });
  const asked = {
    method: 'POST',
    headers: {
      ...traceHeaders({ traceId, submission }),
      authorization: `Token ${DEEPGRAM_API_KEY}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ url: audioUrl }),
    signal,
  };
  const { answer, text } = await fetch(`${DEEPGRAM_URL}/v1/listen?${query}`, asked)
    .then(async (answer) => ({ answer, text: await answer.text() }))
    .catch((error) => {
      if (signal.aborted) throw error;
      // An outage of the service says nothing about what it was to hear: always worth another try.
      throw new RetriableError(
        'transcription_unreachable',
        'The transcription service cannot be reached.',
        undefined,
        `The transcription service at DEEPGRAM_URL cannot be reached: ${messageOf(error)}`,
      );
    });
  if (answer.ok) return parseJson(text);
  throw refusalError(answer.status, readRefusal(parseJson(text)), answer.headers);
}
