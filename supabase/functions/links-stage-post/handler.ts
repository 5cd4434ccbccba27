import { z } from 'zod';
import { readRawPage } from '../_links/raw-page.ts';
import { readPost } from '../_links/read-post.ts';
import { defineStage } from '../_millrace/mod.ts';
import { links } from '../_pipelines/links.ts';
import { stagePostResult } from '../_pipelines/links-results.ts';

export const stagePost = defineStage({
  pipeline: links,
  stage: 'stage_post',
  input: z.object({}),
  output: stagePostResult,
  handler: async (_, context) => readPost(await readRawPage('linkedin_posts_raw', context)),
});
