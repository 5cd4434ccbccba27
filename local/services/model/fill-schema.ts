import { isMentioned, pickValue, saysYes } from './fill-choice.ts';
import { fillNumber } from './fill-number.ts';
import { fillString, textsLike } from './fill-string.ts';
import { type JsonSchema, mergeSchemas, resolveRef, type Schema, typesOf, Unfillable } from './json-schema.ts';
import type { Material } from './material.ts';
import { type Query, wordsOf } from './relevance.ts';

/** Where in the answer a value stands. */
interface Place {
  path: string;
  query: Query;
  /** References followed on the way here; one that comes again is a recursion, which has to end soon. */
  refs: string[];
  /** Values of the same list, as JSON, which should not come again. */
  taken: string[];
}

const usualItems = 3;
const mostValues = 5000;
const deepestRecursion = 2;

/** Makes values for one schema out of one material. Deterministic; throws Unfillable with the path of what it cannot fill. */
export class SchemaFiller {
  readonly #root: Schema;
  readonly #material: Material;
  #values = 0;

  constructor(root: Schema, material: Material) {
    this.#root = root;
    this.#material = material;
  }

  fill(): unknown {
    return this.#value(this.#root, { path: '', query: { name: [], description: [] }, refs: [], taken: [] });
  }

  #value(schema: Schema, place: Place): unknown {
    if (++this.#values > mostValues)
      throw new Unfillable(place.path, `an answer may not hold more than ${mostValues} values`);
    if (schema === false) throw new Unfillable(place.path, 'the schema "false" allows no value');
    if (schema === true) return this.#value({ type: 'string' }, place);
    if (schema.$ref !== undefined) return this.#reference(schema, schema.$ref, place);
    if (schema.allOf) return this.#allOf(schema, schema.allOf, place);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum) return pickValue(schema.enum, place.taken, this.#material, place.path);
    const branches = schema.anyOf ?? schema.oneOf;
    if (branches) return this.#branch(schema, branches, place);
    const types = typesOf(schema);
    return types.length > 1
      ? this.#branch(
          { ...schema, type: undefined },
          types.map((type) => ({ type })),
          place,
        )
      : this.#ofType(types[0] ?? 'string', schema, place);
  }

  #ofType(type: string, schema: JsonSchema, place: Place): unknown {
    const query = withDescription(place.query, schema);
    switch (type) {
      case 'object':
        return this.#object(schema, place);
      case 'array':
        return this.#array(schema, { ...place, query });
      case 'string':
        return fillString(schema, query, this.#material, place.path);
      case 'integer':
      case 'number':
        return fillNumber(schema, type === 'integer', query, this.#material, place.path);
      case 'boolean':
        return saysYes(query, this.#material);
      case 'null':
        return null;
      default:
        throw new Unfillable(place.path, `the type "${type}" is not known`);
    }
  }

  #reference(schema: JsonSchema, ref: string, place: Place): unknown {
    const inside = this.#follow(ref, place);
    const target = resolveRef(this.#root, ref, place.path);
    const { $ref: _, ...rest } = schema;
    return this.#value(typeof target === 'boolean' ? target : mergeSchemas(target, rest), inside);
  }

  #follow(ref: string, place: Place): Place {
    if (place.refs.filter((known) => known === ref).length > deepestRecursion) {
      throw new Unfillable(place.path, `the reference "${ref}" leads to itself without end`);
    }
    return { ...place, refs: [...place.refs, ref] };
  }

  #allOf(schema: JsonSchema, parts: Schema[], place: Place): unknown {
    let inside = place;
    let { allOf: _, ...joined } = schema;
    for (const part of parts) {
      if (part === false) throw new Unfillable(place.path, 'the schema "false" allows no value');
      if (part === true) continue;
      const { $ref: ref, ...own } = part;
      joined = mergeSchemas(joined, own);
      if (ref === undefined) continue;
      inside = this.#follow(ref, inside);
      const target = resolveRef(this.#root, ref, place.path);
      if (typeof target === 'object') joined = mergeSchemas(target, joined);
    }
    return this.#value(joined, inside);
  }

  #branch(schema: JsonSchema, branches: Schema[], place: Place): unknown {
    const { anyOf, oneOf, ...rest } = schema;
    const base = anyOf && oneOf ? { ...rest, oneOf } : rest;
    const recurring = isRecurring(place);
    const order = branches
      .map((branch, index) => ({ branch, index, rank: recurring ? -this.#weight(branch) : this.#fitness(branch) }))
      .sort((a, b) => b.rank - a.rank || a.index - b.index);
    let firstFault: unknown;
    for (const { branch } of order) {
      try {
        return this.#value(typeof branch === 'boolean' ? branch : mergeSchemas(base, branch), place);
      } catch (error) {
        if (!(error instanceof Unfillable)) throw error;
        firstFault ??= error;
      }
    }
    throw firstFault ?? new Unfillable(place.path, 'the schema offers no branch');
  }

  // How near the branch is to what the text is about; null only where nothing else can be had.
  #fitness(branch: Schema): number {
    if (typeof branch === 'boolean') return 0;
    if (branch.type === 'null') return -1;
    const words = wordsOf(JSON.stringify(branch.$ref === undefined ? branch : resolveRef(this.#root, branch.$ref, '')));
    return new Set(words.filter((word) => this.#material.relevance.frequency(word) > 0)).size / (words.length + 1);
  }

  // In a recursion the branch that ends it soonest is the best.
  #weight(branch: Schema): number {
    if (typeof branch === 'boolean' || branch.type === 'null') return 0;
    return branch.$ref !== undefined || JSON.stringify(branch).includes('"$ref"') ? 2 : 1;
  }

  #object(schema: JsonSchema, place: Place): Record<string, unknown> {
    const { properties = {}, required = [], additionalProperties = true, maxProperties = Infinity } = schema;
    const result: Record<string, unknown> = {};
    const recurring = isRecurring(place);
    const optional = recurring ? [] : Object.keys(properties).filter((key) => !required.includes(key));
    // In the order of the schema, so that the answer reads as it was asked for; the required ones come first to the text.
    for (const key of required) result[key] = this.#property(key, properties[key] ?? additionalProperties, place);
    for (const key of optional) {
      if (Object.keys(result).length >= maxProperties) break;
      try {
        result[key] = this.#property(key, properties[key] ?? true, place);
      } catch (error) {
        if (!(error instanceof Unfillable)) throw error;
      }
    }
    this.#addKeys(result, schema, place);
    const ordered = Object.keys(properties).filter((key) => key in result);
    const others = Object.keys(result).filter((key) => !(key in properties));
    return Object.fromEntries([...ordered, ...others].map((key) => [key, result[key]]));
  }

  #property(key: string, schema: Schema, place: Place): unknown {
    const query = { name: wordsOf(key), description: place.query.name };
    return this.#value(schema, { path: place.path ? `${place.path}.${key}` : key, query, refs: place.refs, taken: [] });
  }

  // Free keys are only made up where the schema wants some.
  #addKeys(result: Record<string, unknown>, schema: JsonSchema, place: Place): void {
    const { minProperties = 0, patternProperties = {}, additionalProperties = true, propertyNames } = schema;
    const [pattern, patterned] = Object.entries(patternProperties)[0] ?? [];
    const value = patterned ?? additionalProperties;
    const names = pattern === undefined ? this.#freeNames(propertyNames) : textsLike(pattern, 'small');
    for (const name of names) {
      if (Object.keys(result).length >= minProperties) return;
      if (!(name in result)) result[name] = this.#property(name, value, place);
    }
    if (Object.keys(result).length < minProperties) {
      throw new Unfillable(place.path, `cannot find ${minProperties} keys for it`);
    }
  }

  *#freeNames(propertyNames: Schema | undefined): Generator<string> {
    const query = { name: [], description: [] };
    const place: Place = { path: 'propertyNames', query, refs: [], taken: [] };
    while (propertyNames !== undefined && place.taken.length < usualItems) {
      const name = String(this.#value(propertyNames, place));
      place.taken.push(JSON.stringify(name));
      yield name;
    }
    const words = this.#material.text.toLowerCase().match(/\p{L}{4,}/gu) ?? [];
    yield* new Set(words);
    for (let number = 1; number <= mostValues; number++) yield `key${number}`;
  }

  #array(schema: JsonSchema, place: Place): unknown[] {
    const { minItems = 0, maxItems = Infinity, prefixItems = [], items = true, uniqueItems = false } = schema;
    if (minItems > maxItems) throw new Unfillable(place.path, `minItems ${minItems} is above maxItems ${maxItems}`);
    const recurring = isRecurring(place);
    const usual = recurring || items === false ? prefixItems.length : Math.max(usualItems, prefixItems.length);
    const wanted = Math.min(Math.max(usual, minItems), maxItems);
    const result: unknown[] = [];
    const taken: string[] = [];
    for (let tries = 0; result.length < wanted && tries < wanted * 2; tries++) {
      const index = result.length;
      try {
        const value = this.#value(prefixItems[index] ?? items, { ...place, path: `${place.path}[${index}]`, taken });
        // Of a choice nobody asks for more than what the text speaks of.
        if (isChoice(items) && index >= Math.max(1, minItems) && !isMentioned(value, this.#material)) break;
        const repeated = taken.includes(JSON.stringify(value)) && index >= prefixItems.length;
        if (repeated && (uniqueItems || index >= minItems)) continue;
        result.push(value);
        taken.push(JSON.stringify(value));
      } catch (error) {
        if (error instanceof Unfillable && index >= minItems) break;
        throw error;
      }
    }
    if (result.length < minItems) throw new Unfillable(place.path, `cannot find ${minItems} different items for it`);
    return result;
  }
}

function isChoice(items: Schema): boolean {
  return typeof items === 'object' && items.enum !== undefined;
}

function isRecurring({ refs }: Place): boolean {
  return new Set(refs).size < refs.length;
}

function withDescription(query: Query, { title = '', description = '' }: JsonSchema): Query {
  const own = wordsOf(`${title} ${description}`);
  return own.length > 0 ? { name: query.name, description: own } : query;
}
