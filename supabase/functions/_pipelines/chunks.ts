import { definePipeline } from '../_millrace/mod.ts';
import { modelWork, ownWork, throughOutages } from './stage-defaults.ts';

/** From a chunk of a document's text to the facts in it. After a change run `npm run pipelines:sync`. */
export const chunks = definePipeline({
  name: 'chunks',
  entity: { table: 'public.chunk', key: 'id', projection: 'none' },
  stages: {
    kg: { ...throughOutages(modelWork), function: 'chunks-kg', apply: 'public.apply_facts' },
    // Of its own, so that a Graphiti server that is down costs no second answer of the model.
    graphiti: {
      ...throughOutages(ownWork),
      function: 'chunks-graphiti',
      needs: ['kg'],
      batchSize: 20,
      maxWorkers: 2,
      apply: 'public.apply_graphiti',
    },
  },
});
