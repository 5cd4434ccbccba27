import { z } from 'zod';
import { optionsOf } from '../define/definition-schema.ts';
import { excerpt } from '../errors.ts';
import { nearestName } from './nearest-name.ts';

/** The part of a JSON Schema that is read here: `wanted` completes "must be …", `remedy` says what to do. */
interface Rule {
  wanted?: string;
  remedy?: string;
  type?: string;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Rule>;
  required?: string[];
  additionalProperties?: Rule | boolean;
  items?: Rule;
  anyOf?: Rule[];
  oneOf?: Rule[];
  enum?: unknown[];
  const?: unknown;
}

/** Returns a sentence or two for each fault of what was given: the field, what it must be, what was found, and the remedy. */
export function definitionFaults(schema: z.ZodType, error: z.ZodError, input: unknown): string[] {
  const rules = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Rule;
  return error.issues.flatMap(meantFaults).map((issue) => {
    const field = issue.path.join('.') || 'the definition';
    const value = valueAt(input, issue.path);
    if (issue.code === 'unrecognized_keys') return unknownOption(field, issue, value, ruleAt(rules, input, issue.path));
    const around = ruleAt(rules, input, issue.path.slice(0, -1));
    const ofKinds = issue.code === 'invalid_union' && issue.path.at(-1) === 'kind';
    const beside =
      ofKinds && value === undefined ? misspelt('kind', valueAt(input, issue.path.slice(0, -1))) : undefined;
    if (beside) return `${issue.path.slice(0, -1).join('.')} has the unknown option ${beside}. Do you mean kind?`;
    const rule = ofKinds ? around : ruleAt(rules, input, issue.path);
    // The message of a custom check is more exact than the rule of its field.
    const wanted = issue.code === 'custom' ? undefined : wantedBy(rule);
    const said = wanted === undefined ? issue.message : `must be ${wanted}`;
    const found = value === undefined ? 'missing' : shown(value);
    const fault = said.startsWith('must') ? `${field} is ${found}, but ${said}` : `${field}: ${said} (found: ${found})`;
    const { required } = meantBy(around ?? {}, valueAt(input, issue.path.slice(0, -1)));
    const needed = required?.includes(String(issue.path.at(-1)));
    return `${fault}. ${rule?.remedy ?? (needed ? 'Correct it.' : 'Correct it, or leave it out.')}`;
  });
}

/** Finds a given option whose name may be a misspelt `option`; returns its name and value. */
function misspelt(option: string, given: unknown): string | undefined {
  const name = Object.keys(given ?? {}).find((key) => nearestName(key, [option]));
  return name && `${name}: ${shown(valueAt(given, [name]))}`;
}

function unknownOption(
  field: string,
  issue: z.core.$ZodIssueUnrecognizedKeys,
  value: unknown,
  rule: Rule | undefined,
): string {
  const inStage = issue.path.length === 2 && issue.path[0] === 'stages';
  const kind = (value as { kind?: unknown } | undefined)?.kind;
  const ofStage = inStage ? optionsOf(kind) : null;
  const known = ofStage ?? Object.keys(meantBy(rule ?? {}, value).properties ?? {});
  const near = issue.keys.map((key) => nearestName(key, known)).filter((name) => name !== undefined);
  const takes = ofStage ? `A stage of kind ${kind} takes ${known.join(', ')}.` : 'Correct the name, or leave it out.';
  const remedy = near.length === issue.keys.length ? `Do you mean ${near.join(' and ')}?` : takes;
  const found = issue.keys.map((key) => `${key}: ${shown(valueAt(value, [key]))}`);
  return `${field} has the unknown option ${found.join(' and ')}. ${remedy}`;
}

/** Returns the faults of a value of which there may be one or a list, as those of the alternative that it was meant for. */
function meantFaults(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const meant = issue.errors.find(
    (faults) => !faults.some(({ code, path }) => code === 'invalid_type' && path.length === 0),
  );
  if (!meant) return [issue];
  return meant.flatMap((inner) => meantFaults({ ...inner, path: [...issue.path, ...inner.path] }));
}

/** Finds the rule of a field. Where a value may be of several kinds, or a list, the rule of the given kind counts. */
function ruleAt(rule: Rule | undefined, value: unknown, [key, ...rest]: readonly PropertyKey[]): Rule | undefined {
  if (rule === undefined || key === undefined) return rule;
  const { properties, additionalProperties: any, items } = meantBy(rule, value);
  const inner = Array.isArray(value)
    ? items
    : (properties?.[String(key)] ?? (typeof any === 'object' ? any : undefined));
  return ruleAt(inner, valueAt(value, [key]), rest);
}

function meantBy(rule: Rule, value: unknown): Rule {
  const kind = (value as { kind?: unknown } | null | undefined)?.kind;
  const isMeant = ({ type, properties }: Rule) =>
    rule.oneOf ? isOfKind(properties?.kind, kind) : (type === 'array') === Array.isArray(value);
  return (rule.oneOf ?? rule.anyOf)?.find(isMeant) ?? rule;
}

const isOfKind = (rule: Rule | undefined, kind: unknown) => rule?.const === kind || rule?.enum?.includes(kind);

function wantedBy(rule: Rule | undefined): string | undefined {
  if (rule?.wanted !== undefined) return rule.wanted;
  const { type, minimum: least, maximum: most } = rule?.anyOf?.[0] ?? rule ?? {};
  if (least === undefined || most === undefined) return undefined;
  return `a ${type === 'integer' ? 'whole ' : ''}number from ${least} to ${most}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key], value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? typeof value;
  return text.length > 80 ? `${excerpt(text, 80)}…` : text;
}
