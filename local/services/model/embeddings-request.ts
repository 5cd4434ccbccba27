import { z } from 'zod';
import { countTokens } from './conversation.ts';
import { embedText, usualDimensions } from './embed-text.ts';
import { readBody } from './read-request.ts';

const mostInputs = 2048;
const text = z
  .string({ error: 'send text; lists of tokens are not offered' })
  .min(1, { error: 'a text may not be empty' });

const embeddingsBody = z.object(
  {
    model: z.string().min(1),
    input: z.union([text, z.array(text).min(1).max(mostInputs)], {
      error: `send a text that is not empty, or a list of 1 to ${mostInputs} such texts`,
    }),
    encoding_format: z
      .enum(['float', 'base64'], { error: 'send float or base64' })
      .nullish()
      .transform((format) => format ?? 'float'),
    dimensions: z
      .int({ error: 'send a whole number from 1 to 3072' })
      .min(1)
      .max(3072)
      .nullish()
      .transform((dimensions) => dimensions ?? usualDimensions),
  },
  { error: 'send a JSON object with "model" and "input"' },
);

/** Answers the body of `POST /embeddings` in OpenAI's shape. Throws ApiError 400. */
export function embeddings(body: unknown): object {
  const { model, input, encoding_format: format, dimensions } = readBody(embeddingsBody, body);
  const texts = [input].flat();
  const tokens = texts.reduce((sum, one) => sum + countTokens(one), 0);
  return {
    object: 'list',
    data: texts.map((one, index) => {
      const vector = embedText(one, dimensions);
      return { object: 'embedding', index, embedding: format === 'float' ? vector : toBase64(vector) };
    }),
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

/** Returns the vector as 32-bit floats, the lowest byte first. */
function toBase64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString('base64');
}
