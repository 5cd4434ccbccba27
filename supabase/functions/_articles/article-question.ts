import { z } from 'zod';
import { PermanentError } from '../_millrace/mod.ts';
import { quote } from '../_millrace/model/prompt.ts';

const mostRead = 24_000;

/**
 * The fields of an article that a model reads. All are the row's own, so the stages that ask a model may stand in any
 * order.
 */
export const articleText = z.object({ title: z.string().nullable(), content: z.string().nullable() });

/** An article as a model is given it: material, and no instruction. Throws the PermanentError `no_content`. */
export function articleQuestion({ title, content }: z.output<typeof articleText>): string {
  const heading = title?.trim() ? `# ${title.trim()}` : '';
  const text = [heading, content?.trim()].filter(Boolean).join('\n\n');
  if (text !== '') return quote('article', text, mostRead);
  throw new PermanentError('no_content', 'The article has neither title nor content: write its text into content.');
}
