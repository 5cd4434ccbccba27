import { articles } from '../../../supabase/functions/_pipelines/articles.ts';
import { siteNotices } from '../../../supabase/functions/_pipelines/site-notices.ts';
import { compiled, definitionOf } from '../definitions.ts';
import type { StageDefinition } from '../engine.ts';

type Ask = (statement: string, values: unknown[]) => Promise<unknown[]>;

/** Defines the pipelines over articles where the migrations have not. */
export async function defineArticles(ask: Ask): Promise<void> {
  for (const pipeline of [siteNotices, articles]) {
    const definition = definitionOf(pipeline);
    const known = await ask('select from millrace.pipelines where name = $1', [definition.pipeline]);
    if (known.length === 0) await ask('select millrace.define($1)', [compiled(definition)]);
  }
}

/** The definition of the articles with the stages of enrichment in another order. */
export function articlesInOrder(order: string[]) {
  const definition = definitionOf<{
    entity: { status: { layers: { enrichment: { stages: string[] } } } };
    stages: StageDefinition[];
  }>(articles);
  definition.entity.status.layers.enrichment.stages = order;
  definition.stages = definition.stages.map((stage) => {
    const place = order.indexOf(stage.name);
    if (stage.name === 'review') return { ...stage, needs: order.slice(-1) };
    return place < 0 ? stage : { ...stage, needs: [order[place - 1] ?? 'score'] };
  });
  return definition;
}
