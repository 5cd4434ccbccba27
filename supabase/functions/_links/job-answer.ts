import { z } from 'zod';
import { excerpt } from '../_millrace/errors.ts';
import type { ExtractResult } from '../_pipelines/links-results.ts';
import { fieldText } from './page-text.ts';
import type { Staged } from './staged-rows.ts';

const said = z.string().nullable();

/** The model's answer about a job. */
export const jobAnswer = z.object({
  offers_job: z.boolean().describe('Whether somebody is sought for a job'),
  title: said.describe('The title of the job'),
  company: said.describe('The name of the company that offers it'),
  location: said.describe('Where the work is done'),
  salary: said.describe('The pay, as it is written'),
  company_size: said.describe('How many people the company has'),
  company_sector: said.describe('What the company does, in a few words'),
});
export type JobAnswer = z.output<typeof jobAnswer>;

const longestLine = 300;
const longestDescription = 50_000;

/** Whether what a page states as data leaves nothing to ask about: what job it is, whose and where. */
export function saysAll({ job }: Staged): boolean {
  return Boolean(job?.title && job.company && job.location && job.extras.read_from === 'json_ld');
}

/** The job and the company: as the page states them, and where it does not, as the model says. */
export function extracted(staged: Staged, answer: JobAnswer | null): ExtractResult {
  const by = answer === null ? 'page' : 'model';
  const { job, post } = staged;
  // A page that states its job as data offers one, whatever the model makes of it.
  const offers = answer === null || answer.offers_job || job?.extras.read_from === 'json_ld';
  const title = line(job?.extras.read_from === 'json_ld' ? job.title : null) ?? line(answer?.title) ?? line(job?.title);
  if (!offers || title === null) return { job: null, company: null, by };
  const name = line(job?.company) ?? line(answer?.company);
  const extras = job?.extras;
  const description = job ? job.description : post?.text;
  return {
    job: {
      title,
      location: line(job?.location) ?? line(answer?.location),
      salary: line(job?.salary) ?? line(answer?.salary),
      jd: description === undefined || description === null ? null : excerpt(description, longestDescription),
      application_url: extras?.application_url ?? null,
      valid_through: extras?.valid_through ?? null,
    },
    company:
      name === null
        ? null
        : {
            name,
            website: extras?.company_website ?? null,
            linkedin_url: extras?.company_linkedin ?? null,
            size: line(answer?.company_size),
            sector: line(answer?.company_sector),
          },
    by,
  };
}

function line(text: string | null | undefined): string | null {
  return fieldText(text ?? '', longestLine).replace(/\s+/g, ' ') || null;
}
