import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'messaging-1',
  instructions: `You write a first message to a company, from the plan for it and the subject lines proposed.

Take the subject line that fits best. Write 60 to 150 words in the planned tone: begin with the company and not with us,
make one point well, and end with one question or invitation that is easy to answer. No placeholders, no signature.

${UNTRUSTED_NOTE}`,
};
