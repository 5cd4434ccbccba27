import { z } from 'zod';

// The results of the stages of `chunks`. The question to the model includes each description, which says what to
// write there.

export const factEntity = z.object({
  name: z.string().min(1).max(200).describe('The name as the text writes it, in its fullest form'),
  type: z
    .enum(['person', 'organisation', 'place', 'product', 'event', 'concept', 'other'])
    .describe('What kind of thing it is'),
  description: z.string().max(500).describe('What the text says about it, in one sentence'),
});
export type FactEntity = z.output<typeof factEntity>;

export const factRelation = z.object({
  source: z.string().min(1).max(200).describe('The name of the entity that the fact is about'),
  relation: z.string().min(1).max(80).describe('How the two are related, as a verb in lower case, such as founded'),
  target: z.string().min(1).max(200).describe('The name of the other entity'),
  fact: z.string().min(1).max(500).describe('The fact as one sentence that is understood on its own'),
});
export type FactRelation = z.output<typeof factRelation>;

/** The facts of a chunk: its entities, and relations between these entities only. */
export const kgResult = z.object({
  entities: z.array(factEntity).max(60).describe('People, organisations, places and things the text names'),
  relations: z.array(factRelation).max(80).describe('What the text says of two of these entities'),
});
export type KgResult = z.output<typeof kgResult>;

export const graphitiResult = z.object({
  /** Whether a Graphiti server is set up, and took the chunk. */
  posted: z.boolean(),
});
export type GraphitiResult = z.output<typeof graphitiResult>;
