import { type Prompt, UNTRUSTED_NOTE } from '../_shared/prompt.ts';

export const prompt: Prompt = {
  label: 'extract-1',
  instructions: `You copy the table of contents of a book, entry by entry, in its order.

Write titles as they are printed, with their numbers but without dots and page numbers; join a title that runs over two
lines. Leave nothing out and add nothing.

${UNTRUSTED_NOTE}`,
};
