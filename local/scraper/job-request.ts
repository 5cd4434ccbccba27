import { z } from 'zod';
import { describeKind } from './describe-kind.ts';

const defaultPages = 5;
const mostPages = 20;

const webUrl = z.url({
  protocol: /^https?$/,
  hostname: /./,
  error: remedy('send an http or https URL such as https://example.com/'),
});
const pageCount = remedy(`send a whole number from 1 to ${mostPages}`);

const jobRequest = z.strictObject(
  {
    url: webUrl,
    callback_url: webUrl.optional(),
    metadata: z.record(z.string(), z.unknown(), { error: remedy('send an object') }).default({}),
    max_pages: z
      .int({ error: pageCount })
      .min(1, { error: pageCount })
      .max(mostPages, { error: pageCount })
      .default(defaultPages),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `${issue.keys[0]} is not known; leave it out`
        : `the body is ${describeKind(issue.input)}; send a JSON object with at least "url"`,
  },
);

/** The body of `POST /jobs`, checked, with its defaults. */
export type JobRequest = z.infer<typeof jobRequest>;

/** What is wrong with a body: the field's name, and a message with the kind found and the remedy. */
export interface BadRequest {
  code: 'invalid_request' | 'invalid_url';
  message: string;
  field: string;
}

/** Checks the body of `POST /jobs`. Returns the request, or what is wrong with the first bad field. */
export function readJobRequest(body: unknown): { request: JobRequest } | { bad: BadRequest } {
  const parsed = jobRequest.safeParse(body);
  if (parsed.success) return { request: parsed.data };
  const issue = parsed.error.issues[0];
  const field = issue?.code === 'unrecognized_keys' ? (issue.keys[0] ?? '') : (issue?.path.join('.') ?? '');
  const isText = field === 'url' && typeof (body as { url: unknown }).url === 'string';
  const message = issue?.path.length ? `${field} ${issue.message}` : (issue?.message ?? 'the body is not valid');
  return { bad: { code: isText ? 'invalid_url' : 'invalid_request', message, field: field || 'body' } };
}

function remedy(what: string): (issue: { input?: unknown }) => string {
  return (issue) => `is ${describeKind(issue.input)}; ${what}`;
}
