import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'tag-1',
  instructions: `You choose the tags of an article from those that there are.

Choose one to five tags that say what the article is about, the best one first, exactly as they are written. Rather choose few
that fit than many that nearly do.

${UNTRUSTED_NOTE}`,
};
