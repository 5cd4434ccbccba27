import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'summarize-1',
  instructions: `You write the summary under which readers find an article.

Say in two to four whole sentences of plain English what the article says, translating where needed. Say only what it supports,
begin with what is new in it, and leave out praise, menus, advertisements and legal notices.

${UNTRUSTED_NOTE}`,
};
