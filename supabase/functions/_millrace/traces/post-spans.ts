import { excerpt, messageOf, retryAfterMs } from '../errors.ts';

/** Where traces go. */
export interface Collector {
  url: string;
  headers: Record<string, string>;
  timeoutMs: number;
}

/**
 * The outcome of sending. `taken`: the collector has all spans that it will take, even where `fault` names some that it
 * rejected. `isTooMuch`: it refused this content for good, so that fewer runs may pass. Any other fault may pass with time.
 */
export type Posted =
  | { taken: true; fault: string | null }
  | { taken: false; fault: string; isTooMuch: boolean; waitSeconds: number };

const WAIT_SECONDS = 30;
const LONGEST_WAIT_SECONDS = 3_600;
const LONGEST_REASON = 300;
/** Statuses that the same content gets each time. */
const forGood = [400, 413, 422];

/** Sends spans in JSON to a collector, once. Never throws. */
export async function postSpans(request: object, collector: Collector): Promise<Posted> {
  try {
    const answer = await fetch(collector.url, {
      method: 'POST',
      headers: { ...collector.headers, 'content-type': 'application/json', 'user-agent': 'MillraceTraces/1.0' },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(collector.timeoutMs),
      // A key is for its collector alone.
      redirect: 'manual',
    });
    const text = withoutKeys(await answer.text(), collector);
    if (answer.ok) return { taken: true, fault: rejectionIn(text) };
    const said = excerpt(text, LONGEST_REASON).trim();
    const remedy = remedyFor(answer.status);
    return {
      taken: false,
      fault: `the collector answered ${answer.status}${said && `: ${said}`}${remedy && `. ${remedy}`}`,
      isTooMuch: forGood.includes(answer.status),
      waitSeconds: Math.min((retryAfterMs(answer.headers) ?? 0) / 1000 || WAIT_SECONDS, LONGEST_WAIT_SECONDS),
    };
  } catch (error) {
    const fault = `the collector cannot be reached: ${excerpt(withoutKeys(messageOf(error), collector), LONGEST_REASON)}`;
    return { taken: false, fault, isTooMuch: false, waitSeconds: WAIT_SECONDS };
  }
}

function remedyFor(status: number): string {
  if (status === 401 || status === 403) return 'Correct the key in OTEL_EXPORTER_OTLP_HEADERS.';
  if (status === 404 || status === 405) return 'OTEL_EXPORTER_OTLP_ENDPOINT is the address before /v1/traces.';
  return status >= 300 && status < 400 ? 'It leads elsewhere: enter the address where it leads.' : '';
}

/** Returns the spans that a collector rejected although it took the request, which it does for good; null for none. */
function rejectionIn(answer: string): string | null {
  try {
    const { rejectedSpans = 0, errorMessage = '' } = JSON.parse(answer)?.partialSuccess ?? {};
    if (Number(rejectedSpans) === 0) return null;
    return `the collector rejected ${Number(rejectedSpans)} spans: ${excerpt(String(errorMessage), LONGEST_REASON)}`;
  } catch {
    // Some collectors answer without a body, or with protobuf.
    return null;
  }
}

/** Returns the text without the values of headers, which are keys: collectors repeat what they were sent. */
function withoutKeys(text: string, { headers }: Collector): string {
  return Object.values(headers)
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= 8)
    .reduce((rest, value) => rest.replaceAll(value, '…'), text);
}
