import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'find-1',
  instructions: `You find the pages of a book that hold its printed table of contents: a list of chapters with the numbers of
the pages where they begin. An index, a list of figures and a bibliography are none.

Pages are counted by their place in the file, from 1. Contents mostly stand within the first pages, and may run over
several. Look at the pages before you answer. Answer 0 for both pages when the book has no table of contents.

${UNTRUSTED_NOTE}`,
};
