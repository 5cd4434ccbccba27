import type { z } from 'zod';
import { parseJson } from '../parse-json.ts';
import type { HandlerContext } from './stage.ts';

/** The steps of work that takes several calls. */
export interface Steps<Step> {
  /** The steps that earlier calls of this stage run have recorded, in order. */
  done: Step[];
  /** Records a step; it is safe once this resolves. Throws LeaseLost when the attempt was taken away. */
  record(step: Step): Promise<void>;
}

/**
 * Reads the steps that a stage's stage run, an attempt and its automatic retries, has recorded under `name`. A step that does not
 * have the form of `schema` is left out with those before it, as after a change of the stage's code. A step has at most 1 MB: put
 * anything large into Storage, and record the location. The steps stay with the run, and the operator's page shows them.
 *
 * @example
 * ```ts
 * async function readSome(context: HandlerContext): Promise<{ read: number } | HandedBack> {
 *   const { done, record } = await stepsOf('lines', z.object({ to: z.number() }), context);
 *   const to = (done.at(-1)?.to ?? 0) + 1000;
 *   if (to >= entity.body.length) return { read: entity.body.length };
 *   await record({ to });
 *   return handBack();
 * }
 * ```
 */
export async function stepsOf<Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  { checkpoints }: Pick<HandlerContext, 'checkpoints'>,
): Promise<Steps<z.output<Schema>>> {
  const { turns } = await checkpoints.load();
  let done: z.output<Schema>[] = [];
  for (const turn of turns) {
    if (turn.kind !== 'tool' || turn.content.name !== name) continue;
    const step = schema.safeParse(parseJson(turn.content.output));
    done = step.success ? [...done, step.data] : [];
  }
  let seq = turns.at(-1)?.seq ?? 0;
  return {
    done,
    async record(step) {
      seq += 1;
      const content = { name, arguments: '', output: JSON.stringify(step), failed: false };
      await checkpoints.append({ seq, kind: 'tool', call_id: `step-${seq}`, content });
    },
  };
}
