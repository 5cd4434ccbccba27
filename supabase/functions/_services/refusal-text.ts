import { readBody } from '../_millrace/jobs/read-body.ts';
import { excerpt } from '../_millrace/mod.ts';

const maxBytes = 256 * 1024;
const longest = 500;

/**
 * Reads the beginning of what an answer that is no success says, for the `detail` of an error, without the tags of a page.
 * Resolves to undefined where it is no text, says nothing, says more than 256 kB, or breaks off. Never throws.
 *
 * @example
 * ```ts
 * const answer = await fetch('https://example.com/jobs');
 * if (!answer.ok) throw errorFromStatus(answer.status, answer.headers, 'The site', await refusalText(answer));
 * ```
 */
export async function refusalText(answer: Response): Promise<string | undefined> {
  if (!/text|json|xml/.test(answer.headers.get('content-type') ?? 'text')) {
    await answer.body?.cancel();
    return undefined;
  }
  const text = (await readBody(answer, maxBytes).catch(() => null)) ?? '';
  const words = text.replace(/<(script|style)\b[\s\S]*?<\/\1>|<[^<>]*>/gi, ' ').replace(/\s+/g, ' ');
  return excerpt(words.trim(), longest) || undefined;
}
