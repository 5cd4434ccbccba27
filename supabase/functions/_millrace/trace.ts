/**
 * The origin of a request: the run's trace, and the submission within it. Both are missing where the run is unknown.
 */
export interface Traced {
  traceId?: string | undefined;
  submission?: number | undefined;
}

/**
 * The header by which a service knows the run that asks it, as W3C's Trace Context has it: the run's trace id, and the
 * submission in the place of the span. Every request to a service carries it, so that its own traces can be found by a run's.
 *
 * @example
 * ```ts
 * const answer = await fetch('https://carrier.example.com/rates', { headers: traceHeaders(context) });
 * ```
 */
export function traceHeaders({ traceId = '', submission = 0 }: Traced): Record<string, string> {
  const trace = traceId.replaceAll('-', '').toLowerCase();
  if (!/^[0-9a-f]{32}$/.test(trace) || submission < 1) return {};
  return { traceparent: `00-${trace}-${submission.toString(16).padStart(16, '0')}-01` };
}
