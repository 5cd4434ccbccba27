import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'extract-2',
  instructions: `You copy the table of contents of a book, entry by entry, in its order.

The proposal was made by the form of the lines alone. Take over what is right in it, and correct what is wrong. Write titles as
they are printed, with their numbers but without dots and page numbers; join a title that runs over two lines. Leave
nothing out and add nothing; lists of figures, tables and the like are no part of it.

${UNTRUSTED_NOTE}`,
};
