import { z } from 'zod';

// The result of each stage of `links`; the stage's apply function writes it into the tables.

export const kindOfLink = z.enum(['job', 'post']);

export const classifyResult = z.object({ classification: kindOfLink, by: z.enum(['rule', 'model', 'person']) });
export type ClassifyResult = z.output<typeof classifyResult>;

/** The page itself is a draft in the database, under this id. */
export const linkScrapeResult = z.object({
  draft: z.string().min(1),
  http_status: z.int(),
  bytes: z.int(),
  fingerprint: z.string(),
});
export type LinkScrapeResult = z.output<typeof linkScrapeResult>;

const said = z.string().nullable();

/** The fields of a job that have no column of their own in linkedin_jobs_stage. */
export const jobExtras = z.object({
  read_from: z.enum(['json_ld', 'open_graph', 'text']),
  application_url: said,
  valid_through: z.iso.datetime().nullable(),
  date_posted: z.iso.datetime().nullable(),
  employment_type: said,
  company_website: said,
  company_linkedin: said,
  /** Implausible values of the page, in words. */
  problems: z.array(z.string()),
});
export const stageJobResult = z.object({
  kind: z.literal('job'),
  title: said,
  company: said,
  location: said,
  description: said,
  salary: said,
  extras: jobExtras,
});
export type StageJobResult = z.output<typeof stageJobResult>;

export const stagePostResult = z.object({
  kind: z.literal('post'),
  author: said,
  text: z.string().min(1),
  language: said,
  extras: z.object({
    read_from: z.enum(['json_ld', 'open_graph', 'text']),
    published_at: z.iso.datetime().nullable(),
    /** Doubts about its letters, in words. */
    problems: z.array(z.string()).optional(),
  }),
});
export type StagePostResult = z.output<typeof stagePostResult>;

/** A post that offers no job has neither. */
export const extractResult = z.object({
  job: z
    .object({
      title: z.string().min(1),
      location: said,
      salary: said,
      jd: said,
      application_url: said,
      valid_through: z.iso.datetime().nullable(),
    })
    .nullable(),
  company: z
    .object({ name: z.string().min(1), website: said, linkedin_url: said, size: said, sector: said })
    .nullable(),
  by: z.enum(['page', 'model']),
});
export type ExtractResult = z.output<typeof extractResult>;
