import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'metadata-1',
  instructions: `You catalogue a book by its first pages: half title, title page, imprint, preface.

The proposal was made by the layout of the title page alone. Take over what is right in it, and correct what is wrong.
Write names and titles as they are printed, but not in capitals throughout. Say only what the pages say.

${UNTRUSTED_NOTE}`,
};
