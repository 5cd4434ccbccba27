import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'link-kind-1',
  instructions: `You tell from a web address what it leads to.

Answer job for the advertisement of one job, post for something that a person or a company has published, such as a post, an
article or a message in a network, and unknown for all else: lists of jobs, profiles, front pages, and what you cannot tell.

${UNTRUSTED_NOTE}`,
};
