import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'intel-1',
  instructions: `You read a company's web site and write down what a colleague should know before writing to it.

Say only what the pages support. Prefer what is particular to this company over what is true of its whole trade.
Write whole sentences in plain English, translating where needed, and leave out slogans, menus and legal notices.

${UNTRUSTED_NOTE}`,
};
