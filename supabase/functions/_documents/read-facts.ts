import { type HandlerContext, storableText, Waiting } from '../_millrace/mod.ts';
import { askModel } from '../_millrace/model/model.ts';
import { quote } from '../_millrace/model/prompt.ts';
import { type KgResult, kgResult } from '../_pipelines/chunks-results.ts';
import { normalForm } from '../_services/text/normal-form.ts';
import { proposeFacts } from './candidate-names.ts';
import { prompt } from './facts-prompt.ts';
import type { Chunk } from './split-text.ts';

const MAX_TEXT = 20_000;

/**
 * Asks the model for the entities that a chunk names and the relations between them, with a proposal. With LLM_MODE
 * `background` the answer comes later: hand it to tidyFacts() then. Throws a StageError.
 */
export async function readFacts(
  { text, heading }: Pick<Chunk, 'text' | 'heading'>,
  context: HandlerContext,
): Promise<KgResult | Waiting> {
  const proposal = proposeFacts(text);
  const question = [
    ...(heading ? [quote('headings', heading, MAX_TEXT)] : []),
    quote('proposal', JSON.stringify(proposal, null, 2), MAX_TEXT),
    quote('passage', text, MAX_TEXT),
  ].join('\n\n');
  const answered = await askModel({ name: 'facts', schema: kgResult, prompt, input: question }, context);
  return answered instanceof Waiting ? answered : tidyFacts(answered);
}

/**
 * Keeps the usable part of a model's answer: each entity once, and only relations between two of them, by the
 * entities' names. Replaces characters that cannot be stored: a single character is no reason to lose a document's
 * facts.
 */
export function tidyFacts({ entities, relations }: KgResult): KgResult {
  const names = new Map<string, string>();
  const kept = entities.flatMap(({ name: given, type, description }) => {
    const name = tidyWords(given);
    const key = plainName(name);
    if (key === '' || names.has(key)) return [];
    names.set(key, name);
    return [{ name, type, description: tidyWords(description) }];
  });
  return {
    entities: kept,
    relations: relations.flatMap((said) => {
      const source = names.get(plainName(tidyWords(said.source)));
      const target = names.get(plainName(tidyWords(said.target)));
      const [relation, fact] = [tidyWords(said.relation), tidyWords(said.fact)];
      return source && target && source !== target && relation && fact ? [{ source, relation, target, fact }] : [];
    }),
  };
}

function tidyWords(text: string): string {
  // A single blank stays as it is: to put it in its own place costs a long text ten times as much.
  return storableText(text)
    .replace(/\s{2,}|[^\S ]/g, ' ')
    .trim();
}

/**
 * A name without case, accents and punctuation; the database resolves names further. The marks of scripts in which they
 * are vowels or other letters stay.
 */
function plainName(name: string): string {
  return normalForm(normalForm(name, 'NFKD').replace(/[\u0300-\u036f]/g, ''), 'NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}+#]{2,}|[^\p{L}\p{N}\p{M}+# ]/gu, ' ')
    .trim();
}
