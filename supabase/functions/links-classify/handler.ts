import { z } from 'zod';
import { kindByAddress } from '../_links/kind-of-link.ts';
import { linkAddress } from '../_links/link-address.ts';
import { defineStage, type FinishContext, type HandlerContext, PermanentError, Waiting } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quote } from '../_millrace/model/prompt.ts';
import { links } from '../_pipelines/links.ts';
import { type ClassifyResult, classifyResult, kindOfLink } from '../_pipelines/links-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';
import { prompt } from './prompt.ts';

const input = z.object({
  entity: z.object({
    raw_url: z.string(),
    canonical_url: z.string(),
    classification: z.string().nullable(),
    classified_by: z.string().nullable(),
  }),
});
const answer = z.object({ classification: z.enum(['job', 'post', 'unknown']).describe('What the address leads to') });
const readAnswer = finishAnswer(answer);
const maxOutputTokens = 500;

/** Says what a link leads to: as a person said, else by its address, else as the model says. Throws a StageError. */
export async function classifyLink(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<ClassifyResult | Waiting> {
  const url = linkAddress(entity);
  const said = kindOfLink.safeParse(entity.classification);
  if (entity.classified_by === 'person' && said.success) return { classification: said.data, by: 'person' };
  if (entity.classified_by === 'person' && entity.classification === 'unknown') throw unknownKind();
  const known = kindByAddress(URL.canParse(entity.canonical_url) ? new URL(entity.canonical_url) : url);
  if (known) return { classification: known, by: 'rule' };
  const question = {
    name: 'link_kind',
    schema: answer,
    prompt,
    input: quote('address', url.href, 2_048),
    maxOutputTokens,
    cache: { days: 30, tenant: null },
  };
  const asked = await askModel(question, context);
  return asked instanceof Waiting ? asked : byModel(asked, context);
}

export const classify = defineStage({
  pipeline: links,
  stage: 'classify',
  input,
  output: classifyResult,
  handler: classifyLink,
  services: [model],
  finish: async (job, context) => byModel(await readAnswer(job, context), context),
  settings: [modelSettings],
});

async function byModel(
  { classification }: z.output<typeof answer>,
  { entityId, env, signal }: Pick<FinishContext, 'entityId' | 'env' | 'signal'>,
): Promise<ClassifyResult> {
  if (classification !== 'unknown') return { classification, by: 'model' };
  const { error, status } = await projectClient(env)
    .rows.rpc('note_unknown_link', { p_link_id: entityId })
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, 'Noting that the link is of no known kind');
  throw unknownKind();
}

function unknownKind(): PermanentError {
  return new PermanentError(
    'unknown_kind',
    'unknown_kind: it is neither a job nor a post. If it is, set classification to job or post, and status to new.',
  );
}
