import { z } from 'zod';
import type { PipelineDefinition } from '../define/define-pipeline.ts';
import type { ChildItem } from '../engine/engine-contract.ts';
import { PermanentError } from '../errors.ts';
import type { SettingsGroup } from '../settings.ts';
import { type HandlerContext, type Stage, stageOf, type Waiting, waiting } from './stage.ts';
import { describeFault, storageFault } from './validate-result.ts';

/** The service that a waiting map stage names: its children's runs. */
const CHILDREN_SERVICE = 'children';
const CHUNK_SIZE = 500;
/** Well under what the Data API and its proxies take in one request. */
const CHUNK_BYTES = 900_000;
const encoder = new TextEncoder();

/** The result of a map stage, as stages that need it get it. */
export const mapResult = z.object({
  total: z.number(),
  completed: z.number(),
  failed: z.number(),
  cancelled: z.number(),
});

type Items<T> = Iterable<T> | AsyncIterable<T>;

export interface MapOptions<Input extends z.ZodType, Item extends z.ZodType<ChildItem>, Name extends string = string> {
  pipeline: PipelineDefinition<Name>;
  /** A stage of kind `map`. */
  stage: NoInfer<Name>;
  input: Input;
  /** One child: its `key`, and what the definition's insert function is to write. */
  item: Item;
  /**
   * The children, each under a key of its own. A retry asks for them again, and passes over those that were started: the
   * same child must have the same key every time.
   */
  items(input: z.output<Input>, context: HandlerContext): Items<z.input<Item>> | Promise<Items<z.input<Item>>>;
  /** How many items to start in one transaction, where 500 take the insert function longer than a few seconds. */
  chunkSize?: number;
  /** Groups of settings the stage cannot work without. */
  settings?: readonly SettingsGroup[];
}

/**
 * A stage that starts a run of its child pipeline for each item, in chunks, and then waits for them: the definition's
 * fan-in rule says when it is done. Throws when the pipeline defines no map stage of that name.
 *
 * @example
 * ```ts
 * export const parcels = defineMap({
 *   pipeline: orders,
 *   stage: 'parcels',
 *   input: z.object({ entity: z.object({ id: z.string(), lines: z.array(z.string()) }) }),
 *   item: z.object({ key: z.string(), article: z.string() }),
 *   items: ({ entity }) => entity.lines.map((article, index) => ({ key: `line-${index}`, article })),
 * });
 * ```
 */
export function defineMap<Input extends z.ZodType, Item extends z.ZodType<ChildItem>, Name extends string>(
  options: MapOptions<Input, Item, Name>,
): Stage {
  const { pipeline, stage, input, settings } = options;
  const { kind } = pipeline.stage(stage);
  if (kind !== 'map') {
    throw new Error(`Stage ${stage} of pipeline ${pipeline.name} is of kind ${kind}: defineMap() is for the kind map.`);
  }
  return stageOf({
    pipeline,
    stage,
    input,
    output: mapResult,
    handler: async (given, context) => {
      const items = await options.items(given as z.output<Input>, context);
      return spawnAll(options, items, context);
    },
    // Its children finish it, in the database.
    services: [],
    settings,
  });
}

async function spawnAll<Input extends z.ZodType, Item extends z.ZodType<ChildItem>>(
  { item: schema, chunkSize = CHUNK_SIZE }: MapOptions<Input, Item>,
  items: Items<z.input<Item>>,
  { children, signal }: HandlerContext,
): Promise<Waiting> {
  const keys = new Set<string>();
  let chunk: ChildItem[] = [];
  let bytes = 0;
  for await (const given of items) {
    signal.throwIfAborted();
    const place = `items[${keys.size}]`;
    const item = checkItem(schema, given, keys, place);
    const size = sizeOf(item, place);
    // Sends a chunk only when another item follows it: until then it may be the last.
    if (chunk.length >= chunkSize || (chunk.length > 0 && bytes + size > CHUNK_BYTES)) {
      await children.spawn(chunk, false);
      chunk = [];
      bytes = 0;
    }
    chunk.push(item);
    bytes += size;
  }
  signal.throwIfAborted();
  const fanOut = await children.spawn(chunk, true);
  return waiting({ name: CHILDREN_SERVICE }, String(fanOut));
}

/** Returns the item as its schema parses it. Throws where its key is not new. */
function checkItem(schema: z.ZodType<ChildItem>, given: unknown, keys: Set<string>, place: string): ChildItem {
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const fault = describeFault(parsed.error, given, place);
    throw new PermanentError('invalid_item', `An item is not as the stage declares it: ${fault}. Correct it.`);
  }
  const key = String(parsed.data.key);
  if (keys.has(key)) {
    throw new PermanentError(
      'duplicate_key',
      `${place} has the key ${JSON.stringify(key)}, as an item before it: a key stands for one child, so give each its own.`,
    );
  }
  keys.add(key);
  return parsed.data;
}

/** Returns how many bytes the item takes up in a request. */
function sizeOf(item: ChildItem, place: string): number {
  const fault = storageFault(item, place);
  if (fault) throw new PermanentError('invalid_item', fault);
  const json = JSON.stringify(item);
  const bytes = encoder.encode(json).length + 1;
  if (bytes <= CHUNK_BYTES) return bytes;
  throw new PermanentError(
    'item_too_large',
    `The item with the key ${JSON.stringify(item.key)} has ${bytes} bytes, and at most ${CHUNK_BYTES} can be sent: ` +
      'put its content into Storage and send the location.',
  );
}
