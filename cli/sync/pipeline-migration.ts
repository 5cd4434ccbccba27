// The text of a migration that defines a pipeline, and the way back from such texts to definitions.
import { definitionSchema, type JsonSchema } from '../engine/definition-schema.ts';

export interface DefinitionJson {
  pipeline: string;
  entity: {
    table: string;
    key: string;
    projection: string;
    metadata?: string;
    startable_by?: string[];
    status?: { column: string };
  };
  stages: StageJson[];
}

/** What is read here of a stage; the definition says more. */
export interface StageJson {
  name: string;
  kind: string;
  /** Left out by the kinds that no function runs. */
  function?: string;
  child?: { pipeline: string };
  after?: { map: string; stage: string }[];
  limits?: { back_pressure?: BackPressureJson | BackPressureJson[]; shared?: string[] };
}

export interface BackPressureJson {
  stage: string;
}

const definition = /select millrace\.define\(\$pipeline\$(.*?)\$pipeline\$\);/gs;

/** The latest definition of each pipeline in the migrations' texts, given in order. */
export function definitionsIn(migrations: string[]): Map<string, DefinitionJson> {
  const found = migrations
    .flatMap((text) => [...text.matchAll(definition)])
    .map((match) => JSON.parse(match[1] ?? '') as DefinitionJson);
  return new Map(found.map((pipeline) => [pipeline.pipeline, pipeline]));
}

/**
 * A migration that defines `pipeline`; stages that are new to it get their columns first. `defined` is what the migrations
 * so far define, by name. The roles that `entity.startableBy` names may write the status of each stage, or the one that shows
 * them all.
 */
export function pipelineMigration(pipeline: DefinitionJson, defined: Map<string, DefinitionJson>): string {
  const before = defined.get(pipeline.pipeline);
  const known = before?.stages.map((stage) => stage.name) ?? [];
  const added = pipeline.stages.filter((stage) => !known.includes(stage.name));
  const shown = pipeline.entity.projection === 'columns' && added.length > 0;
  const names = added.map((stage) => `'${stage.name}'`).join(', ');
  return [
    `-- The pipeline ${pipeline.pipeline}, written by \`npm run pipelines:sync\` from supabase/functions/_pipelines.`,
    '-- Do not edit the definition: change it there and run the command again, which adds another migration.',
    '',
    ...(shown ? [`select millrace.add_columns('${pipeline.entity.table.replaceAll("'", "''")}', ${names});`, ''] : []),
    ...startingRights(pipeline, before?.entity.table === pipeline.entity.table ? before : undefined),
    // A name may hold the tag that ends the text.
    `select millrace.define($pipeline$${compactText(pipeline).replaceAll(/\$(?=pipeline\$)/g, '\\u0024')}$pipeline$);`,
    '',
  ].join('\n');
}

/** A definition in as few lines as show what changes: a line a field and a line a stage, without what is the default. */
export function compactText(pipeline: DefinitionJson): string {
  const { stages, ...fields } = withoutDefaults(pipeline, schema) as { stages: unknown[] };
  const lines = Object.entries(fields).map(([field, value]) => `  ${JSON.stringify(field)}: ${JSON.stringify(value)},`);
  const list = stages.map((stage) => `    ${JSON.stringify(stage)}`).join(',\n');
  return ['{', ...lines, '  "stages": [', list, '  ]', '}'].join('\n');
}

const schema = definitionSchema();
const parts = schema.$defs as Record<string, JsonSchema>;

/** A value without the fields that are as the engine would fill them in. */
function withoutDefaults(value: unknown, { $ref, ...beside }: JsonSchema): unknown {
  const of = { ...(typeof $ref === 'string' && parts[$ref.replace('#/$defs/', '')]), ...beside };
  if (Array.isArray(value)) return value.map((item) => withoutDefaults(item, of.items ?? {}));
  if (typeof value !== 'object' || value === null) return value;
  const { kind } = value as { kind?: string };
  const isOne = ({ properties: { kind: rule = {} } = {} }: JsonSchema) =>
    (rule.enum as unknown[]).includes(kind ?? rule.default);
  const { properties, additionalProperties: any } = of.oneOf?.find(isOne) ?? of;
  const fields = Object.entries(value).flatMap(([field, inner]) => {
    const rule = properties?.[field] ?? (typeof any === 'object' ? any : {});
    const kept = withoutDefaults(inner, rule);
    return JSON.stringify(kept) === JSON.stringify(rule.default) ? [] : [[field, kept]];
  });
  return Object.fromEntries(fields);
}

/** Grants the statuses that a role may write now and might not before, and revokes those of a role that may no longer. */
function startingRights(now: DefinitionJson, before: DefinitionJson | undefined): string[] {
  const had = statusesByRole(before);
  const has = statusesByRole(now);
  const kept = statusColumns(now);
  const lines = [...new Set([...had.keys(), ...has.keys()])].flatMap((role) => {
    const [old = [], wanted = []] = [had.get(role), has.get(role)];
    const granted = wanted.filter((column) => !old.includes(column));
    const revoked = old.filter((column) => kept.includes(column) && !wanted.includes(column));
    return [
      ...(granted.length > 0
        ? [`grant update (${granted.map(quoted).join(', ')}) on ${now.entity.table} to ${role};`]
        : []),
      ...(revoked.length > 0
        ? [`revoke update (${revoked.map(quoted).join(', ')}) on ${now.entity.table} from ${role};`]
        : []),
    ];
  });
  return lines.length > 0 ? [...lines, ''] : [];
}

/** A column as SQL names it, whatever its name is; those of stages are plain. */
const quoted = (column: string) =>
  /^[a-z][a-z0-9_]*_status$/.test(column) ? column : `"${column.replaceAll('"', '""')}"`;

/** The statuses of a pipeline by the roles that may write them. */
function statusesByRole(pipeline: DefinitionJson | undefined): Map<string, string[]> {
  return new Map(pipeline?.entity.startable_by?.map((role) => [role, statusColumns(pipeline)]));
}

/** The columns by which people start stages: one a stage, or the one that shows them all. */
export function statusColumns({ entity, stages }: DefinitionJson): string[] {
  return entity.status ? [entity.status.column] : stages.map(({ name }) => `${name}_status`);
}
