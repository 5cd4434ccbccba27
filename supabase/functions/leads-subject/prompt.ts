import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'subject-1',
  instructions: `You write subject lines for a first message to a company, from the plan for that message.

Give up to three, each different in approach and at most 80 characters long. Be concrete and honest: no capital letters
for effect, no exclamation marks, no false "Re:", nothing the plan does not hold.

${UNTRUSTED_NOTE}`,
};
