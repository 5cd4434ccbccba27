import { z } from 'zod';

// The result of each stage of `leads`. The question to the model includes each description, which says what to write
// there.

const sentence = (description: string) => z.string().min(1).max(600).describe(description);
const list = (description: string, min: number, max: number) =>
  z.array(z.string().min(1).max(300)).min(min).max(max).describe(description);

const sitePage = z.object({
  url: z.string(),
  title: z.string(),
  markdown: z.string(),
  /** Doubts about its letters, such as a charset that was guessed. */
  doubts: z.array(z.string()).optional(),
});

export const scrapeResult = z.object({
  pages: z.array(sitePage).min(1),
  /** Pages of the site that could not be read, each with the scraper's code of why. */
  left_out: z.array(z.object({ url: z.string(), code: z.string() })).optional(),
});

export const intelResult = z.object({
  company_name: z.string().min(1).max(120).describe('The name of the company, as it calls itself'),
  summary: z.string().min(1).max(1200).describe('What the company does, in two to four sentences'),
  industry: z.string().min(1).max(120).describe('The industry or trade of the company'),
  offerings: list('Products and services the company offers', 1, 8),
  audience: sentence('The customers the company serves'),
  signals: list('Facts that show what matters to the company now: growth, new products, places, values', 1, 6),
  challenges: list('Problems the company or its customers probably have, judging by the text', 1, 5),
});

export const strategyResult = z.object({
  angle: sentence('The one idea the message should open with'),
  value_proposition: sentence('What we can do for this company, in its own terms'),
  talking_points: list('Points worth mentioning, each resting on a fact about the company', 2, 5),
  objections: list('Reasons the company may have to say no', 1, 3),
  tone: z.enum(['friendly', 'formal', 'enthusiastic', 'matter_of_fact']).describe('The tone that suits the company'),
});

export const subjectResult = z.object({
  lines: z
    .array(z.string().min(8).max(80).describe('A subject line of at most 80 characters'))
    .min(1)
    .max(3)
    .describe('Subject lines to choose from, the best one first'),
});

export const messagingResult = z.object({
  subject: z.string().min(8).max(80).describe('The subject line of the message, at most 80 characters'),
  body: z.string().min(40).max(4000).describe('The text of the message, without subject and signature'),
  call_to_action: z.string().min(1).max(300).describe('The one thing the reader is asked to do'),
});
