// The facts that are read from pages, good and bad: jobs in the many shapes of their data, posts, and what tells one version from another.
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decodePage } from '../../supabase/functions/_links/decode-page.ts';
import { fingerprint } from '../../supabase/functions/_links/fingerprint.ts';
import { extracted } from '../../supabase/functions/_links/job-answer.ts';
import { kindByAddress } from '../../supabase/functions/_links/kind-of-link.ts';
import { readPageParts } from '../../supabase/functions/_links/page-parts.ts';
import { withRemedy } from '../../supabase/functions/_links/page-remedies.ts';
import { readJob } from '../../supabase/functions/_links/read-job.ts';
import { readPost } from '../../supabase/functions/_links/read-post.ts';
import { PermanentError } from '../../supabase/functions/_millrace/errors.ts';

const url = 'https://a.test/jobs/1';
const now = new Date('2026-11-20T00:00:00Z');
const page = (html: string) => ({ html, parts: readPageParts(html), url });
const script = (data: unknown) =>
  `<script type="application/ld+json">${typeof data === 'string' ? data : JSON.stringify(data)}</script>`;
const posting = { '@type': 'JobPosting', title: 'Weaver', hiringOrganization: { name: 'Acme' }, description: 'Weave.' };
const job = (data: unknown) => readJob(page(script(data)), now);

describe('the data of a job', () => {
  test.each([
    ['alone', posting],
    ['in a list', [{ '@type': 'WebSite' }, posting]],
    ['in a graph', { '@context': 'https://schema.org', '@graph': [{ '@type': 'Organization', name: 'B' }, posting] }],
    ['as the main entity of its page', { '@type': 'WebPage', mainEntity: posting }],
    ['with a list of types that are addresses', { ...posting, '@type': ['http://schema.org/JobPosting', 'Thing'] }],
    ['with the company as a text', { ...posting, hiringOrganization: 'Acme' }],
    ['with a company in a list', { ...posting, hiringOrganization: [{ name: 'Acme' }] }],
    ['in a comment, with a semicolon', `<!-- ${JSON.stringify(posting)}; -->`],
    [
      'with a comma too many and a line break in a text',
      `{"@type":"JobPosting","title":"Weaver","hiringOrganization":"Acme","description":"Weave\n.",}`,
    ],
  ])('is read %s', (_, data) => {
    expect(job(data)).toMatchObject({
      title: 'Weaver',
      company: 'Acme',
      extras: { read_from: 'json_ld', problems: [] },
    });
  });

  test('of several is the one of this page, else the one that says most', () => {
    const own = { ...posting, title: 'Dyer', url: 'https://www.a.test/jobs/1/?ref=x' };
    expect(job([posting, own])).toMatchObject({ title: 'Dyer' });
    expect(job([{ '@type': 'JobPosting', title: 'Other' }, posting])).toMatchObject({ title: 'Weaver' });
  });

  test.each([
    ['60.000 € im Jahr', '60.000 € im Jahr'],
    [60_000, '60000'],
    [{ currency: 'EUR', value: { minValue: 50_000, maxValue: 60_000, unitText: 'YEAR' } }, '50000–60000 EUR a year'],
    [{ '@type': 'MonetaryAmount', currency: 'EUR', value: 4000 }, '4000 EUR'],
    [[{ currency: 'EUR', value: { value: '25', unitText: 'HOUR' } }], '25 EUR a hour'],
    [{ currency: 'EUR' }, null],
    [null, null],
  ])('has a salary in any shape: %j', (baseSalary, salary) => {
    expect(job({ ...posting, baseSalary })).toMatchObject({ salary });
  });

  test.each([
    [{ address: { addressLocality: 'Ulm', addressCountry: { name: 'DE' } } }, 'Ulm, DE'],
    [[{ address: 'Ulm' }, { address: { addressLocality: 'Bonn' } }], 'Ulm; Bonn'],
    ['Ulm', 'Ulm'],
    [undefined, 'Remote'],
  ])('has a location in any shape: %j', (jobLocation, location) => {
    const remote = jobLocation === undefined ? { jobLocationType: 'TELECOMMUTE' } : {};
    expect(job({ ...posting, jobLocation, ...remote })).toMatchObject({ location });
  });

  test('has a description without its tags, escaped even twice', () => {
    expect(job({ ...posting, description: '&lt;p&gt;Weave &amp;amp; dye&lt;/p&gt;' })).toMatchObject({
      description: 'Weave & dye',
    });
  });

  test('has its one-line fields without entities, whichever way they are written', () => {
    const fields = { title: 'Dyer&#x27;s mate &#8211; night', hiringOrganization: { name: 'Moss &amp; O&#x27;Neill' } };
    const place = { address: { addressLocality: 'K&ouml;ln', addressCountry: 'DE' } };
    expect(job({ ...posting, ...fields, jobLocation: place, baseSalary: '30&nbsp;&euro;' })).toMatchObject({
      title: "Dyer's mate – night",
      company: "Moss & O'Neill",
      location: 'Köln, DE',
      salary: '30 €',
    });
  });

  test.each([
    ['a day, somewhere', '2026-11-20', null, '2026-11-20T23:59:59.999Z', '2026-11-21T11:59:59.999Z'],
    ['a day in Japan', '2026-11-20', 'JP', '2026-11-20T14:59:59.999Z', '2026-11-20T14:59:59.999Z'],
    ['a day in a country by its name', '2026-11-20', 'Germany', '2026-11-20T22:59:59.999Z', '2026-11-20T22:59:59.999Z'],
    ['a day in a country of many zones', '2026-11-20', 'USA', '2026-11-21T09:59:59.999Z', '2026-11-21T09:59:59.999Z'],
    ['midnight, which is a day', '2026-11-20T00:00:00', 'DE', '2026-11-20T22:59:59.999Z', '2026-11-20T22:59:59.999Z'],
    ['an hour without a zone', '2026-11-20T18:00', 'DE', '2026-11-20T17:00:00.000Z', '2026-11-20T17:00:00.000Z'],
    ['a moment', '2026-11-20T00:00:00+01:00', 'JP', '2026-11-19T23:00:00.000Z', '2026-11-19T23:00:00.000Z'],
  ])('is good until %s is over', (_, validThrough, addressCountry, shown, over) => {
    const data = script({ ...posting, validThrough, jobLocation: { address: { addressCountry } } });
    const at = (moment: number) => readJob(page(data), new Date(moment)).extras.valid_through;
    expect(at(Date.parse(over))).toBe(shown);
    expect(() => at(Date.parse(over) + 1)).toThrow(expect.objectContaining({ code: 'expired' }));
  });

  test('has no date in 1900, and says so', () => {
    const { extras } = job({ ...posting, datePosted: '1900-01-01', validThrough: 'soon' });
    expect(extras).toMatchObject({ date_posted: null, valid_through: null });
    expect(extras.problems).toEqual([
      'validThrough is "soon", which was left out.',
      'datePosted is "1900-01-01", which was left out.',
    ]);
  });

  test('that is over ends the link, with the day', () => {
    expect(() => job({ ...posting, validThrough: '2026-11-01' })).toThrow(
      expect.objectContaining({ code: 'expired', message: expect.stringContaining('2026-11-01') }),
    );
  });
});

test('where the data is broken, OpenGraph and text speak, and the row says it', () => {
  const html = `<head><meta property="og:title" content="Weaver at Acme">${script('{"@type": "JobPosting", "title": ')}</head>
    <body><nav>Home</nav><p>Weave cloth.</p><aside>Buy!</aside></body>`;
  expect(readJob(page(html), now)).toMatchObject({
    title: 'Weaver at Acme',
    description: 'Weave cloth.',
    extras: { read_from: 'open_graph', problems: ['Its JSON-LD is broken and was passed over.'] },
  });
});

test('a page without any text is refused', () => {
  expect(() => readJob(page('<body><script>1</script></body>'), now)).toThrow(
    expect.objectContaining({ code: 'no_content' }),
  );
});

test.each([
  ['by its header', 'text/html; charset=windows-1252', Buffer.from('<p>Färber</p>', 'latin1')],
  ['by itself', 'text/html', Buffer.from('<meta charset="iso-8859-1"><p>Färber</p>', 'latin1')],
  ['by nothing', 'text/html', Buffer.from('<p>Färber</p>')],
])('a page is read in the charset that is named %s', (_, type, bytes) => {
  expect(decodePage(gzipSync(bytes), type).text).toContain('Färber');
});

test('a page that unpacks to more than is read is refused', () => {
  expect(() => decodePage(gzipSync(Buffer.alloc(20 * 1024 * 1024)), 'text/html')).toThrow(
    expect.objectContaining({ code: 'too_large' }),
  );
});

describe('a post', () => {
  test('has text, author and language', () => {
    const html = `<html lang="en"><title>Bea on LinkedIn: Farben</title><main>Wir suchen eine Färberin für das Werk. Sie ist
      mit der Wolle vertraut, und die Arbeit ist nicht schwer.</main></html>`;
    expect(readPost(page(html))).toMatchObject({ author: 'Bea', language: 'de', extras: { read_from: 'text' } });
  });

  test('is read from its data first', () => {
    const data = {
      '@type': 'SocialMediaPosting',
      author: { name: 'Bea' },
      articleBody: 'Hello',
      datePublished: '2026-11-01',
    };
    expect(readPost(page(`<p>Other</p>${script(data)}`))).toMatchObject({
      author: 'Bea',
      text: 'Hello',
      extras: { read_from: 'json_ld', published_at: '2026-11-01T00:00:00.000Z' },
    });
  });
});

describe('the fingerprint', () => {
  const text = (advertisement: string, words = 'Weave cloth.') =>
    `<title>Weaver</title><body><p>${words}</p><div class="ad-box sponsor">${advertisement}</div></body>`;
  test('stays when another advertisement stands beside the job, and when the page was made anew', () => {
    expect(fingerprint(page(text('Buy wool')))).toBe(fingerprint(page(text('Buy silk'))));
    const again = { ...posting, datePosted: '2026-11-02' };
    expect(fingerprint(page(`${script(posting)}<p>Buy wool</p>`))).toBe(
      fingerprint(page(`${script(again)}<p>Buy silk</p>`)),
    );
  });
  test('changes with the job', () => {
    expect(fingerprint(page(text('', 'Weave.')))).not.toBe(fingerprint(page(text('', 'Dye.'))));
    expect(fingerprint(page(script(posting)))).not.toBe(fingerprint(page(script({ ...posting, title: 'Dyer' }))));
  });
});

test.each([
  ['https://www.linkedin.com/jobs/view/3912345678', 'job'],
  ['https://www.linkedin.com/feed/update/urn:li:activity:7123456789', 'post'],
  ['https://www.linkedin.com/in/bea', null],
  ['https://boards.greenhouse.io/acme/jobs/12', 'job'],
  ['https://www.indeed.com/viewjob?jk=1a', 'job'],
  ['https://acme.test/careers/weaver', 'job'],
  ['https://acme.test/careers', null],
  ['https://acme.test/blog/we-are-hiring', 'post'],
  ['https://acme.test/blog/jobs/weaver', null],
])('the address %s tells %s', (address, kind) => {
  expect(kindByAddress(new URL(address))).toBe(kind);
});

describe('what the model says', () => {
  const answer = {
    offers_job: false,
    title: 'Emperor',
    company: 'Elsewhere',
    location: 'Bonn',
    salary: '1 EUR',
    company_size: '50',
    company_sector: null,
  };
  test('fills what the page does not state, and changes nothing that it does', () => {
    const staged = job({ ...posting, jobLocation: undefined });
    expect(extracted({ job: staged }, answer)).toMatchObject({
      job: { title: 'Weaver', location: 'Bonn', salary: '1 EUR' },
      company: { name: 'Acme', size: '50' },
    });
  });
  test('makes no job of a post that offers none', () => {
    expect(extracted({ post: { author: 'Bea', text: 'Hello' } }, answer)).toEqual({
      job: null,
      company: null,
      by: 'model',
    });
  });
});

test.each([
  'not_found',
  'removed',
  'unsupported_type',
  'too_large',
  'no_content',
  'too_many_redirects',
  'invalid_url',
  'dns_not_found',
  'blocked_address',
  'connection_refused',
  'tls_error',
  'http_error',
  'damaged_content',
  'unreadable_page',
])('a page that is given up as %s says which word to write', (code) => {
  const said = withRemedy(new PermanentError(code, 'https://a.test/: it cannot be had'));
  expect(said).toMatchObject({ code, permanent: true });
  expect((said as Error).message).toMatch(
    /^https:\/\/a\.test\/: it cannot be had\. .*\b(write|and) status (new|queued)\./,
  );
});

test('whatever a page says can be stored, wherever it is cut and whatever it has in it', () => {
  const long = (length: number) => `${'x'.repeat(length - 1)}😀 and so on`;
  const html = `<html lang="en\u0000-${'x'.repeat(14)}😀"><title>${long(4000)}</title>
    <meta property="og:description" content="${long(4000)}"><body>${long(50_000)}</body></html>`;
  const parts = readPageParts(html);
  const described = { ...posting, title: long(300), description: long(50_000) };
  const staged = job(described);
  const said = [parts, readPost(page(html)), staged, extracted({ job: staged }, null)];
  expect(JSON.stringify(said)).not.toMatch(/\\u0000|\\ud[89a-f]/);
  expect(parts.title).toHaveLength(3999);
  expect(staged.description).toHaveLength(49_999);
});
