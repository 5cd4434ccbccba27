import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { type AlertMessage, alertMessage } from '../../supabase/functions/_millrace/alerts/alert-message.ts';
import { deliverMessage } from '../../supabase/functions/_millrace/alerts/deliver-message.ts';
import { takenMessage } from '../../supabase/functions/_millrace/engine/alert-contract.ts';
import { parseHosts, type Resolve } from '../../supabase/functions/_millrace/public-hosts.ts';
import { type Reply, refusedUrl, startServer } from '../support/http-server.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const raised = {
  event: 'raised' as const,
  rule: 'backlog',
  message: '12 runs are ready at assess of claims, above 10',
  since: '2026-11-02T09:00:00+00:00',
  at: '2026-11-02T09:30:00+00:00',
  playbook: 'https://wiki.example.com/throttle',
};

function messageTo(address: string | null, changes: Partial<AlertMessage> = {}): AlertMessage {
  return {
    message: 7,
    try: 2,
    webhook_id: 'msg_1',
    created_at: '2026-11-02T09:01:00+00:00',
    channel: 'ops',
    kind: 'webhook',
    address,
    secret,
    sender: 'Millrace <alerts@example.com>',
    api_url: 'https://api.resend.com/emails',
    project: 'https://project.test',
    events: [raised],
    more: 0,
    ...changes,
  };
}

const local = { allowed: parseHosts('127.0.0.1'), timeoutMs: 20_000 };

/** Delivers to a server that answers like this; returns what came of it, and what the server was sent. */
async function deliver(reply: Reply | null, changes: Partial<AlertMessage> = {}, reach = local) {
  const server = await startServer(() => reply);
  const url = `${server.url}/hook?key=hush`;
  const given = changes.kind === 'email' ? { address: 'a@example.com, b@example.com', api_url: url } : { address: url };
  const delivery = await deliverMessage(messageTo(null, { ...given, ...changes }), reach);
  return { delivery, received: server.received };
}

describe('a webhook', () => {
  test('is signed as Standard Webhooks says, under the message’s id', async () => {
    const { delivery, received } = await deliver({ status: 204 });
    expect(delivery).toEqual({ message: 7, try: 2, ok: true, status: 204 });
    const [request] = received;
    const headers = request?.headers as Record<string, string>;
    expect(headers['webhook-id']).toBe('msg_1');
    expect(new Webhook(secret).verify(request?.body ?? '', headers)).toEqual({
      type: 'millrace.alerts',
      timestamp: '2026-11-02T09:01:00+00:00',
      data: { project: 'https://project.test', page_url: null, channel: 'ops', events: [raised], more: 0 },
    });
    expect(() => new Webhook(secret).verify(`${request?.body} `, headers)).toThrow();
  });

  test.each([500, 503, 408, 425, 429])('that answers %i is tried again', async (status) => {
    const { delivery } = await deliver({ status, headers: { 'retry-after': '120' }, json: { why: 'busy' } });
    expect(delivery).toMatchObject({ ok: false, status, permanent: false, retry_after_ms: 120_000 });
    expect(delivery.error).toContain(`answered ${status}`);
  });

  test.each([400, 401, 404, 410])('that answers %i is not', async (status) => {
    const { delivery } = await deliver({ status });
    expect(delivery).toMatchObject({ ok: false, status, permanent: true });
  });

  test('that leads elsewhere is not followed', async () => {
    const elsewhere = await startServer(() => ({}));
    const { delivery } = await deliver({ status: 302, headers: { location: elsewhere.url } });
    expect(delivery).toMatchObject({ ok: false, status: 302, permanent: true });
    expect(delivery.error).toContain('enter the address where it leads');
    expect(elsewhere.received).toEqual([]);
  });

  test('that hangs is given up in time, and tried again', async () => {
    const { delivery } = await deliver(null, {}, { ...local, timeoutMs: 200 });
    expect(delivery).toMatchObject({ ok: false, permanent: false, error: 'The request timed out.' });
  });

  test('that cannot be reached is tried again, and its address, a secret, is told to nobody', async () => {
    const delivery = await deliverMessage(messageTo(`${await refusedUrl()}/hush`), local);
    expect(delivery).toMatchObject({ ok: false, permanent: false });
    expect(JSON.stringify(delivery)).not.toContain('hush');
  });

  test('that repeats its address or the key in its answer has neither told to anybody', async () => {
    const answers = ['Cannot POST /hook?key=hush', '<pre>Cannot POST /hook</pre> key=hush'];
    for (const said of answers) {
      const { delivery } = await deliver({ status: 404, bytes: Buffer.from(said) });
      expect(delivery.error).toMatch(/^The receiver answered 404: .*…/);
      expect(delivery.error).not.toMatch(/hush|\/hook/);
    }
    const { delivery } = await deliver(
      { status: 401, bytes: Buffer.from(`key ${secret} is unknown`) },
      { kind: 'email' },
    );
    expect(delivery.error).toBe('The receiver answered 401: key … is unknown');
    const long = await deliver({ status: 404, bytes: Buffer.from(`${'x '.repeat(148)}hush`) });
    expect(long.delivery.error).not.toContain('hus');
  });

  test('that answers with a megabyte is read no further than its beginning', async () => {
    const { delivery } = await deliver({ status: 500, bytes: Buffer.alloc(1_000_000, 'x') });
    expect(delivery.error?.length).toBeLessThan(400);
  });
});

describe('an address', () => {
  const resolving =
    (address: string): Resolve =>
    async () => [{ address, family: address.includes(':') ? 6 : 4 }];

  test.each([
    'https://127.0.0.1/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://0x7f000001/',
  ])('inside of a network is refused for good: %s', async (address) => {
    const delivery = await deliverMessage(messageTo(address), { allowed: new Set(), timeoutMs: 300 });
    expect(delivery).toMatchObject({ ok: false, permanent: true });
    expect(delivery.error).toContain('ALERT_ALLOW_HOSTS');
  });

  test('whose name leads inside is refused for good', async () => {
    for (const found of ['10.0.0.1', '::1', '100.64.0.1']) {
      const reach = { allowed: new Set<string>(), timeoutMs: 300, resolve: resolving(found) };
      expect(await deliverMessage(messageTo('https://hooks.example.com/1'), reach)).toMatchObject({
        ok: false,
        permanent: true,
        error: expect.stringContaining('not on the public internet'),
      });
    }
  });

  test('without TLS is refused, but on a host that is allowed', async () => {
    const reach = { allowed: new Set<string>(), timeoutMs: 300, resolve: resolving('93.184.215.14') };
    expect(await deliverMessage(messageTo('http://hooks.example.com/1'), reach)).toMatchObject({ permanent: true });
  });

  test.each([null, '', 'nonsense', 'ftp://example.com', 'https://user:pass@example.com/'])(
    'that is missing or none waits for its correction: %s',
    async (address) => {
      const delivery = await deliverMessage(messageTo(address), local);
      expect(delivery).toMatchObject({ ok: false, permanent: false });
      expect(delivery.error).toMatch(/millrace_channel_ops_address|no web address/);
    },
  );

  test.each([null, 'whsec_!', ''])('whose secret is missing or none waits for its correction: %s', async (given) => {
    const { delivery, received } = await deliver({}, { secret: given });
    expect(delivery).toMatchObject({ ok: false, permanent: false });
    expect(delivery.error).toContain('millrace_channel_ops_secret');
    expect(received).toEqual([]);
  });
});

test('Slack shows what a message says as text: no markup, no mention, no link but the playbook’s and the page’s', async () => {
  const message = '<!channel> *bold* _it_ `x` a & b\u202e\nc <http://evil.test|click> https://evil.test';
  const shown = '<!channel> *bold* _it_ `x` a & b c <http://evil.test|click> https://evil.test';
  const { received } = await deliver({}, { kind: 'slack', secret: null, events: [{ ...raised, message }], more: 3 });
  const more = '… and 3 more: select * from millrace.alerts where resolved_at is null';
  const section = (elements: object[]) => ({
    type: 'rich_text',
    elements: [{ type: 'rich_text_section', elements }],
  });
  expect(JSON.parse(received[0]?.body ?? '')).toEqual({
    text:
      'Raised: &lt;!channel&gt; *bold* _it_ `x` a &amp; b c &lt;http:\u2060//evil.test|click&gt; https:\u2060//evil.test\n' +
      `${more}\nProject: https:\u2060//project.test`,
    mrkdwn: false,
    unfurl_links: false,
    blocks: [
      section([
        { type: 'text', text: 'Raised', style: { bold: true } },
        { type: 'text', text: `: ${shown}` },
        { type: 'text', text: ' ' },
        { type: 'link', url: raised.playbook, text: 'What to do' },
      ]),
      section([{ type: 'text', text: more }]),
      section([{ type: 'text', text: 'Project: https://project.test' }]),
    ],
  });
});

test('an e-mail goes to all addresses by one call with the key, under the message’s id', async () => {
  const resolved = { ...raised, event: 'resolved' as const, resolved_at: '2026-11-02T09:30:00+00:00' };
  const { received } = await deliver({}, { kind: 'email', secret: 're_key', events: [raised, resolved] });
  const [request] = received;
  expect(request?.headers).toMatchObject({ authorization: 'Bearer re_key', 'idempotency-key': 'msg_1' });
  expect(JSON.parse(request?.body ?? '')).toEqual({
    from: 'Millrace <alerts@example.com>',
    to: ['a@example.com', 'b@example.com'],
    subject: '[Millrace project.test] Raised: 12 runs are ready at assess of claims, above 10 (and 1 more)',
    text: [
      'Raised: 12 runs are ready at assess of claims, above 10.\nSince 2026-11-02T09:00:00+00:00\n' +
        'What to do: https://wiki.example.com/throttle',
      'Resolved: 12 runs are ready at assess of claims, above 10.\n' +
        'Since 2026-11-02T09:00:00+00:00, until 2026-11-02T09:30:00+00:00',
      'Project: https://project.test',
    ].join('\n\n'),
  });
});

test('Slack and an e-mail show the newest twenty of what had to wait, the newest first', async () => {
  const events = Array.from({ length: 30 }, (_, minute) => ({
    ...raised,
    message: `alert ${minute}`,
    at: new Date(Date.UTC(2026, 10, 2, 9, minute)).toISOString(),
  }));
  const slack = await deliver({}, { kind: 'slack', events });
  const lines = (JSON.parse(slack.received[0]?.body ?? '') as { text: string }).text.split('\n');
  expect([...lines.slice(0, 2), ...lines.slice(-3)]).toEqual([
    'Raised: alert 29',
    'Raised: alert 28',
    'Raised: alert 10',
    expect.stringContaining('and 10 more'),
    expect.stringContaining('Project: '),
  ]);
  const email = await deliver({}, { kind: 'email', events: [{ event: 'test', message: 'A test' }, ...events] });
  const { subject } = JSON.parse(email.received[0]?.body ?? '') as { subject: string };
  expect(subject).toBe('[Millrace project.test] Raised: alert 29 (and 30 more)');
});

test('the subject of an e-mail has one line, whatever a message holds', async () => {
  const events = [{ ...raised, message: `a\r\nBcc: x@example.com\u2028${'y'.repeat(500)}` }];
  const { received } = await deliver({}, { kind: 'email', events });
  const { subject } = JSON.parse(received[0]?.body ?? '') as { subject: string };
  expect(subject).toMatch(/^\[Millrace project.test\] Raised: a Bcc: x@example.com y+$/);
  expect(subject.length).toBeLessThanOrEqual(160);
});

describe('an alert that can be acted on', () => {
  const page_url = 'https://ops.example.com/operate/';
  const project = 'https://abcdefghijklmnopqrst.supabase.co';
  const places = {
    message: 7,
    try: 1,
    webhook_id: 'msg_1',
    created_at: '2026-11-02T09:01:00+00:00',
    channel: 'ops',
    secret,
    sender: 'Millrace <alerts@example.com>',
    api_url: 'https://api.resend.com/emails',
    more: 0,
    project,
    page_url,
    playbooks_url: 'https://docs.example.com/v1/playbooks',
    kind: 'email',
    address: 'a@example.com',
  };
  const at = '2026-11-02T09:30:00+00:00';
  const failing = (alert: number, stage: string, changes: object = {}) => ({
    event: 'raised',
    alert,
    kind: 'error_share',
    rule: 'errors',
    pipeline: 'leads',
    stage,
    value: 0.4,
    above: 0.1,
    detail: 'model_unavailable',
    cause: 'model_unavailable',
    span_seconds: 600,
    since: at,
    at,
    playbook: null,
    ...changes,
  });
  const told = (events: object[], changes: object = {}) =>
    alertMessage(takenMessage.parse({ ...places, events, ...changes }));
  const sent = async ({ address: _, api_url: __, ...message }: AlertMessage) =>
    (await deliver({}, message)).received[0]?.body ?? '';
  const textOf = async (message: AlertMessage) => (JSON.parse(await sent(message)) as { text: string }).text;

  test('leads to the dead letters where runs of the same cause are dead, else to the stage', async () => {
    const dead = failing(8, 'intel', { kind: 'dead', rule: 'dead', stage: null, value: 12, above: 10 });
    for (const events of [[dead], [failing(7, 'intel'), dead]]) {
      expect(await sent(told(events, { kind: 'email' }))).toContain(`${page_url}#/dead/leads`);
    }
    expect(await sent(told([failing(7, 'intel')], { kind: 'email' }))).toContain(
      `${page_url}#/pipeline/leads?stage=intel`,
    );
  });

  test('tells by each channel the project, the place, today’s value, what to do, the page, and a silence for an hour', async () => {
    const facts = failing(7, 'intel', { value_now: 0.62, detail_now: 'rate_limited' });
    const wanted = [
      project,
      '40 % of what ended at intel of leads in the last 10 minutes failed',
      'now 62 %, most often as rate_limited',
      'https://docs.example.com/v1/playbooks/throttle.md',
      `${page_url}#/pipeline/leads?stage=intel`,
      `${page_url}#/alerts?silence=7&minutes=60`,
    ];
    for (const kind of ['email', 'slack', 'webhook']) {
      const body = JSON.stringify(JSON.parse(await sent(told([facts], { kind }))));
      for (const text of wanted) expect(body, kind).toContain(text);
    }
    const command = 'npx millrace silence 7 --minutes 60 --reason TEXT --remote=abcdefghijklmnopqrst';
    for (const kind of ['email', 'slack', 'webhook']) {
      expect(await sent(told([facts], { kind, page_url: null })), kind).toContain(command);
    }
  });

  test('is told once with all that has its cause, and the engine’s own stands first', async () => {
    const events = [
      failing(1, 'intel'),
      failing(2, 'strategy'),
      failing(3, 'subject', { detail: 'boom', cause: 'boom' }),
      failing(4, 'intel', { kind: 'backlog', rule: 'backlog', cause: null, value: 1200, above: 1000 }),
      failing(5, '', { kind: 'dead', rule: 'dead', stage: null, value: 12, above: 10, span_seconds: 3600 }),
      failing(6, '', { kind: 'engine', rule: 'engine', pipeline: null, stage: null, cause: null, detail: 'no sweep' }),
      failing(8, 'subject', { event: 'resolved', resolved_at: at }),
    ];
    const text = await textOf(told(events));
    const titles = text.split('\n').filter((line) => /^(Raised|Resolved)/.test(line));
    expect(titles).toEqual([
      'Raised: the engine is not well: no sweep.',
      'Raised: 4 alerts of one cause, model_unavailable:',
      expect.stringContaining('Raised: 40 % of what ended at subject'),
      expect.stringContaining('Resolved: 40 %'),
    ]);
    expect(text.match(/^• .*$/gm)).toHaveLength(4);
    expect(text).toContain('npx millrace silence 1 2 4 5 --minutes 60');
    const { subject } = JSON.parse(await sent(told(events))) as { subject: string };
    expect(subject).toMatch(
      /^\[Millrace abcdefghijklmnopqrst\] Raised: the engine is not well: no sweep \(and 6 more\)$/,
    );
  });

  test('has no link where page_url is no address of the web, and one cause hides nothing of what a code is', async () => {
    const odd = told([failing(7, 'intel', { cause: '<!channel>' }), failing(8, 'x', { cause: '<!channel>' })], {
      kind: 'slack',
      page_url: 'javascript:alert(1)',
    });
    const body = await sent(odd);
    expect(body).not.toContain('javascript');
    expect((JSON.parse(body) as { text: string }).text).toContain('one cause, &lt;!channel&gt;');
  });
});
