import { describe, expect, test } from 'vitest';
import {
  classify,
  errorFromStatus,
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  retryAfterMs,
} from '../../supabase/functions/_millrace/errors.ts';
import { refusedUrl } from '../support/http-server.ts';

const none = new Headers();

describe('HTTP answers sort into hard and retriable', () => {
  test.each([
    [403, 'forbidden', true],
    [404, 'not_found', true],
    [410, 'not_found', true],
    [400, 'request_rejected', true],
    [408, 'timeout', false],
    [429, 'rate_limited', false],
    [500, 'server_error', false],
    [502, 'server_error', false],
    [503, 'server_error', false],
  ])('%i is %s, permanent: %s', (status, code, permanent) => {
    expect(classify(errorFromStatus(status, none, 'The site'))).toMatchObject({
      code,
      permanent,
      message: `The site answered ${status}`,
    });
  });

  test('an account without money is a setting to mend', () => {
    expect(classify(errorFromStatus(402, none, 'The site'))).toMatchObject({
      code: 'misconfigured',
      permanent: false,
      message: "The site answered 402: the account's money is out. Add credit to it.",
    });
  });

  test('retry-after-ms counts before Retry-After', () => {
    expect(retryAfterMs(new Headers({ 'retry-after-ms': '1250.4', 'retry-after': '7' }))).toBe(1_250);
    expect(retryAfterMs(new Headers({ 'retry-after-ms': 'soon', 'retry-after': '7' }))).toBe(7_000);
  });

  test('Retry-After is honoured in seconds and as a date', () => {
    expect(classify(errorFromStatus(429, new Headers({ 'retry-after': '7' }), 'It')).retry_after_ms).toBe(7_000);
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(retryAfterMs(new Headers({ 'retry-after': 'Thu, 01 Jan 2026 00:01:30 GMT' }), now)).toBe(90_000);
    expect(retryAfterMs(new Headers({ 'retry-after': 'soon' }), now)).toBeUndefined();
    expect(classify(errorFromStatus(429, none, 'It'))).not.toHaveProperty('retry_after_ms');
  });
});

describe('what fetch throws', () => {
  test('a refused connection is hard', async () => {
    const error = await fetch(await refusedUrl()).catch((e: unknown) => e);
    expect(classify(error)).toMatchObject({ code: 'connection_refused', permanent: true });
  });

  test('a name that does not exist is hard', () => {
    const node = new TypeError('fetch failed', {
      cause: Object.assign(new Error('getaddrinfo ENOTFOUND no.invalid'), { code: 'ENOTFOUND' }),
    });
    const deno = new TypeError('fetch failed', {
      cause: new Error(
        'error sending request for url (http://no.invalid/): client error (Connect): dns error: failed to lookup address information: Name or service not known',
      ),
    });
    for (const error of [node, deno]) {
      expect(classify(error)).toMatchObject({ code: 'dns_not_found', permanent: true });
    }
  });

  test('a name server that is out of order, a timeout and a lost connection are retriable', () => {
    const because = (message: string, code?: string) =>
      new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) });
    expect(classify(because('getaddrinfo EAI_AGAIN host', 'EAI_AGAIN')).permanent).toBe(false);
    const temporary = 'dns error: failed to lookup address information: Temporary failure in name resolution';
    expect(classify(because(temporary)).permanent).toBe(false);
    expect(classify(because('read ECONNRESET', 'ECONNRESET'))).toMatchObject({
      code: 'connection_lost',
      permanent: false,
    });
    expect(classify(new DOMException('The operation timed out.', 'TimeoutError'))).toMatchObject({
      code: 'timeout',
      permanent: false,
    });
  });
});

describe('what a handler throws', () => {
  test('the runtime’s own errors keep code, kind and wait', () => {
    expect(classify(new PermanentError('no_content', 'nothing there'))).toEqual({
      code: 'no_content',
      message: 'nothing there',
      permanent: true,
    });
    expect(classify(new RetriableError('rate_limited', 'slowly', 5_000))).toMatchObject({ retry_after_ms: 5_000 });
    expect(classify(new MisconfiguredError('X is not set'))).toMatchObject({ code: 'misconfigured', permanent: false });
  });

  test.each([new TypeError('x is undefined'), 'a string', undefined, { malformed: true }])(
    'anything nobody foresaw is retriable: %s',
    (thrown) => {
      expect(classify(thrown)).toMatchObject({ code: 'unexpected_error', permanent: false });
    },
  );

  const hostile = Object.defineProperty(new Error('x'), 'message', {
    get: () => {
      throw new Error('no message for you');
    },
  });
  test.each([
    ['without a prototype', Object.create(null)],
    ['whose message throws', hostile],
    ['with a symbol for a message', Object.assign(new Error('x'), { message: Symbol('s') })],
    ['with a code that is no text', Object.assign(new Error('x'), { code: Object.create(null) })],
  ])('even an object %s is classified, as retriable', (_, thrown) => {
    const failure = classify(thrown);
    expect(failure).toMatchObject({ code: 'unexpected_error', permanent: false });
    expect(failure.message).toBeTypeOf('string');
    expect(messageOf(thrown)).toBeTypeOf('string');
  });

  test('a message that Postgres could not store is made storable', () => {
    const { message } = classify(new PermanentError('x', `a\u0000b\ud800c😀${'z'.repeat(5_000)}`));
    expect(message.startsWith('a\ufffdb\ufffdc😀')).toBe(true);
    expect(message.length).toBeLessThanOrEqual(2_000);
  });
});

describe('where it was thrown', () => {
  const lines = (name: string, count: number) => `${`    at ${name} (file:///handler.ts:1:1)\n`.repeat(count)}`;
  const thrown = (message: string, places: string) =>
    Object.assign(new TypeError(message), { stack: `TypeError: ${message}\n${places}` });

  test('is kept of what nobody foresaw, without the message that the detail has', () => {
    const { detail, stack } = classify(thrown(`${'m'.repeat(1_000_000)}\nat the end`, lines('handler', 3)));
    expect(detail).toHaveLength(2_000);
    expect(stack).toBe(lines('handler', 3).trim());
    expect(classify(new Error('broken')).stack).toMatch(/^at .*errors\.test\.ts/);
  });

  test('has two kilobytes at most, of whole characters that Postgres can store', () => {
    const { stack = '' } = classify(thrown('x', lines('é😀\u0000\ud800', 500)));
    expect(new TextEncoder().encode(stack).length).toBeGreaterThan(2_040);
    expect(new TextEncoder().encode(stack).length).toBeLessThanOrEqual(2_048);
    expect(stack).toContain('é😀\ufffd\ufffd');
    expect(stack).not.toContain('\u0000');
  });

  test('is nobody’s business where the error was foreseen', () => {
    expect(classify(new PermanentError('no_content', 'nothing there'))).not.toHaveProperty('stack');
    expect(classify(new Error('fetch failed'))).not.toHaveProperty('stack');
    expect(classify('a text')).not.toHaveProperty('stack');
  });
});

describe('what the owner of a row reads', () => {
  test('names no address of a dead service, which operators find in the detail', async () => {
    const url = await refusedUrl();
    const { port } = new URL(url);
    const { message, detail } = classify(await fetch(url).catch((e: unknown) => e));
    expect(message).toBe('The host refused the connection.');
    expect(detail).toContain(port);
  });

  test('names no path of what nobody foresaw', () => {
    const { code, message, detail } = classify(new TypeError("cannot open '/home/deno/secret.ts' at 10.0.0.7:5432"));
    expect({ code, message }).toEqual({
      code: 'unexpected_error',
      message: 'Something went wrong that nobody foresaw (unexpected_error).',
    });
    expect(detail).toBe("TypeError: cannot open '/home/deno/secret.ts' at 10.0.0.7:5432");
  });

  test('is what a handler says to it, and no more', () => {
    const failure = classify(
      new PermanentError('no_site', 'Your site is empty.', undefined, 'GET http://10.0.0.7/ 204'),
    );
    expect(failure).toEqual({
      code: 'no_site',
      message: 'Your site is empty.',
      detail: 'GET http://10.0.0.7/ 204',
      permanent: true,
    });
  });
});
