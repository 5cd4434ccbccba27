import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'facts-1',
  instructions: `You are given a passage of a document and say what it names (people, organisations, places, products,
events, concepts that matter) and what it says of two of these.

The proposal was made by capital letters and by the words between two of them. Take over what is right in it, correct what is
wrong, leave out what is no name or no fact, and add what it lacks. Give each thing once, under its fullest name in the
passage; a relation's source and target are names of your list, written as they are there. State only what the passage says.
Write in its language.

${UNTRUSTED_NOTE}`,
};
