import { z } from 'zod';
import { describeKind } from './describe-kind.ts';

/** The fault of a request's body: the field's name, and a message with the kind found and the remedy. */
export interface BadRequest {
  code: 'invalid_request' | 'invalid_url';
  message: string;
  field: string;
}

/** Returns the error message of a field: what was found, and what to send in its place. */
export function remedy(what: string): (issue: { input?: unknown }) => string {
  return (issue) => `is ${describeKind(issue.input)}; ${what}`;
}

/** A field that holds an http or https URL. */
export const webUrl = z.url({
  protocol: /^https?$/,
  hostname: /./,
  error: remedy('send an http or https URL such as https://example.com/'),
});

/** Returns the body of `POST /jobs` with the given fields beside those that every service takes. */
export function jobRequest<Fields extends z.core.$ZodLooseShape>(fields: Fields) {
  const common = {
    callback_url: webUrl.optional(),
    metadata: z.record(z.string(), z.unknown(), { error: remedy('send an object') }).default({}),
  };
  return z.strictObject(
    { ...fields, ...common },
    {
      error: (issue) =>
        issue.code === 'unrecognized_keys'
          ? `${issue.keys[0]} is not known; leave it out`
          : `the body is ${describeKind(issue.input)}; send a JSON object with at least "${Object.keys(fields)[0]}"`,
    },
  );
}

/** Checks the body of `POST /jobs`. Returns the request with its defaults, or what is wrong with the first bad field. */
export function readJobRequest<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): { request: z.output<Schema> } | { bad: BadRequest } {
  const parsed = schema.safeParse(body);
  if (parsed.success) return { request: parsed.data };
  const issue = parsed.error.issues[0];
  const field = issue?.code === 'unrecognized_keys' ? (issue.keys[0] ?? '') : (issue?.path.join('.') ?? '');
  const isTarget = field === 'url' || field === 'document_url';
  const isText = isTarget && typeof (body as Record<string, unknown>)[field] === 'string';
  const message = issue?.path.length ? `${field} ${issue.message}` : (issue?.message ?? 'the body is not valid');
  return { bad: { code: isText ? 'invalid_url' : 'invalid_request', message, field: field || 'body' } };
}
