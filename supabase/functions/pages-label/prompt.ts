import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'label-1',
  instructions: `You are given one page of a book, line by line, and say which lines are not its running text.

The proposal was made by layout alone: sizes, distances and places of lines. Take over what is right in it, and correct
what is wrong. Write each line exactly as it stands on the page. A heading is a title of a chapter or a section that begins
on this page; entries of a table of contents and of an index are none, and neither is the running head.

${UNTRUSTED_NOTE}`,
};
