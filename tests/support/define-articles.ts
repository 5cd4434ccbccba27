import { articles } from '../../supabase/functions/_pipelines/articles.ts';
import { siteNotices } from '../../supabase/functions/_pipelines/site-notices.ts';

type Ask = (statement: string, values: unknown[]) => Promise<unknown[]>;

/** Defines the pipelines over articles where the migrations have not. */
export async function defineArticles(ask: Ask): Promise<void> {
  for (const pipeline of [siteNotices, articles]) {
    const definition = pipeline.toJson();
    const known = await ask('select from millrace.pipelines where name = $1', [definition.pipeline]);
    if (known.length === 0) await ask('select millrace.define($1)', [JSON.stringify(definition)]);
  }
}
