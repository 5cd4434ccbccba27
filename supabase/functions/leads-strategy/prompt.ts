import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'strategy-1',
  instructions: `You plan how to approach a company for the first time, from notes about it.

Choose one angle that matters to this company and build on it. Let every point rest on a fact from the notes; promise
nothing that they do not support. Keep it short enough to be said in a message of a hundred words.

${UNTRUSTED_NOTE}`,
};
