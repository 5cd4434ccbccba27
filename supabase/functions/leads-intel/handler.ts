import { z } from 'zod';
import { defineStage, excerpt, type HandlerContext } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quote } from '../_millrace/model/prompt.ts';
import { leads } from '../_pipelines/leads.ts';
import { intelResult, scrapeResult } from '../_pipelines/leads-results.ts';
import { prompt } from './prompt.ts';

const MAX_SITE_TEXT = 24_000;

const input = z.object({ needs: z.object({ scrape: scrapeResult }) });

/** Reads the company's pages and says what there is to know about it. */
export function readCompany({ needs }: z.output<typeof input>, context: HandlerContext) {
  const share = Math.floor(MAX_SITE_TEXT / needs.scrape.pages.length);
  const pages = needs.scrape.pages.map((page) => excerpt(`# ${page.title}\n${page.url}\n\n${page.markdown}`, share));
  const question = quote('site_text', pages.join('\n\n'), MAX_SITE_TEXT);
  return askModel({ name: 'company_intelligence', schema: intelResult, prompt, input: question }, context);
}

export const intel = defineStage({
  pipeline: leads,
  stage: 'intel',
  input,
  output: intelResult,
  handler: readCompany,
  services: [model],
  finish: finishAnswer(intelResult),
  settings: [modelSettings],
});
