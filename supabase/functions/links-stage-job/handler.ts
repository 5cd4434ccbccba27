import { z } from 'zod';
import { readRawPage } from '../_links/raw-page.ts';
import { readJob } from '../_links/read-job.ts';
import { defineStage } from '../_millrace/mod.ts';
import { links } from '../_pipelines/links.ts';
import { stageJobResult } from '../_pipelines/links-results.ts';

export const stageJob = defineStage({
  pipeline: links,
  stage: 'stage_job',
  input: z.object({}),
  output: stageJobResult,
  handler: async (_, context) => readJob(await readRawPage('linkedin_jobs_raw', context), new Date()),
});
