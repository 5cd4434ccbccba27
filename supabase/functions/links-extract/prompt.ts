import { type Prompt, UNTRUSTED_NOTE } from '../_millrace/model/prompt.ts';

export const prompt: Prompt = {
  label: 'link-job-1',
  instructions: `You read what was published about a job, and say what it tells of the job and of the company that offers it.

Say offers_job only where somebody is sought for a job that can be applied for. Write each field as the text has it, and null
where the text does not say it; guess nothing. Leave out what concerns another job.

${UNTRUSTED_NOTE}`,
};
