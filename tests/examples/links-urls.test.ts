import fc from 'fast-check';
import { expect } from 'vitest';
import { projectTest as test } from '../support/engine.ts';

const job = 'https://www.linkedin.com/jobs/view/3912345678';
const post = 'https://www.linkedin.com/feed/update/urn:li:activity:7190000000000000001';
const indeed = 'https://www.indeed.com/viewjob?jk=0a1b2c3d4e5f6071';
const lever = 'https://jobs.lever.co/acme/0f8fad5b-d9cb-469f-a165-70867728950e';

/** Spellings of one address, the canonical one last. */
const spellings = [
  [
    job,
    'http://linkedin.com/jobs/view/3912345678/?refId=abc&trackingId=x%3D%3D#top',
    'https://de.linkedin.com/jobs/view/senior-weaver-at-acme-3912345678',
    'www.linkedin.com/jobs/view/3912345678',
    'https://www.linkedin.com/jobs/search/?currentJobId=3912345678&keywords=weaver',
    'https://m.linkedin.com/jobs/view/3912345678/apply/',
  ],
  [
    post,
    'https://www.linkedin.com/posts/some-one_hiring-weavers-activity-7190000000000000001-AbCd?utm_source=share',
    'linkedin.com/feed/update/urn%3Ali%3Aactivity%3A7190000000000000001/',
  ],
  [
    indeed,
    'https://de.indeed.com/viewjob?from=serp&jk=0A1B2C3D4E5F6071',
    'https://indeed.com/jobs?q=x&vjk=0a1b2c3d4e5f6071',
  ],
  [lever, 'https://jobs.lever.co/acme/0F8FAD5B-D9CB-469F-A165-70867728950E/apply?lever-source=x'],
  ['https://boards.greenhouse.io/acme/jobs/4012345', 'https://job-boards.greenhouse.io/acme/jobs/4012345?gh_src=x#app'],
  [
    'https://example.com/a/B?a=1&b=2',
    'HTTP://WWW.Example.com:80/a/B/?b=2&utm_campaign=x&a=1#part',
    ' https://user:word@example.com./a/B?b=2&a=1 ',
  ],
  ['https://example.com/', 'example.com/', 'https://example.com'],
  ['https://example.com:8443/x', 'example.com:8443/x/'],
  ['not a link', ' not a link'],
  ['mailto:a@example.com', 'mailto:a@example.com'],
];

test('every spelling of an address is one link', async ({ engine }) => {
  const { rows } = await engine.sql.query(
    `select s.spelling, s.canonical, public.canonical_url(s.spelling) as made
     from jsonb_to_recordset($1) s(spelling text, canonical text)
     where public.canonical_url(s.spelling) <> s.canonical`,
    [
      JSON.stringify(
        spellings.flatMap(([canonical, ...others]) =>
          [canonical, ...others].map((spelling) => ({ spelling, canonical })),
        ),
      ),
    ],
  );
  expect(rows).toEqual([]);
});

/** Addresses of different pages, which no spelling makes one. */
const different = [
  'https://a.test/jobs?ref=1001',
  'https://a.test/jobs?ref=1002',
  'https://a.test/jobs?position=engineer',
  'https://a.test/jobs?position=weaver',
  'https://a.test/jobs?source=1',
  'https://a.test/jobs?src=1',
  'https://a.test/jobs?share=1',
  'https://a.test/jobs?pageNum=2',
  'https://a.test/jobs?si=2',
  'https://a.test/careers#/jobs/1',
  'https://a.test/careers#/jobs/2',
  'https://a.test/careers#!/jobs/2',
  'https://a.test/careers',
];

test('postings that differ in what only some hosts use to track stay apart', async ({ engine }) => {
  const { rows } = await engine.sql.query('select distinct public.canonical_url(u) from unnest($1::text[]) u', [
    different,
  ]);
  expect(rows).toHaveLength(different.length);
  expect(
    await engine.value(
      `select public.canonical_url('https://a.test/careers?utm_medium=x&gclid=1&fbclid=2&GBRAID=3&id=7#apply')`,
    ),
  ).toBe('https://a.test/careers?id=7');
  expect(
    await engine.value(
      `select public.canonical_url('https://www.linkedin.com/company/acme?position=3&pageNum=0&refId=x')`,
    ),
  ).toBe('https://www.linkedin.com/company/acme');
});

test('a canonical address is its own, whatever was written', async ({ engine }) => {
  const parts = fc.constantFrom(
    ...[
      'https://',
      'http://',
      'www.',
      'linkedin.com',
      'example.com',
      '/jobs/view/',
      '12345',
      '?',
      '&',
      'a=1',
      'utm_x=2',
      '#',
      '/',
      ':',
      '@',
      '.',
      ' ',
    ],
    ...['/feed/update/urn:li:activity:', 'jk=ab', 'currentJobId=55555', 'é', '%2F'],
  );
  const texts = fc.sample(
    fc.array(parts, { maxLength: 8 }).map((some) => some.join('')),
    3000,
  );
  const { rows } = await engine.sql.query(
    `select t, public.canonical_url(t) as once, public.canonical_url(public.canonical_url(t)) as twice
     from unnest($1::text[]) t where public.canonical_url(public.canonical_url(t)) <> public.canonical_url(t)`,
    [texts],
  );
  expect(rows).toEqual([]);
});

test('spellings of a company’s name meet', async ({ engine }) => {
  const { rows } = await engine.sql.query(
    `select distinct public.company_key(n) as key from unnest(array['ACME Inc.', 'Acme, Inc', 'acme', ' Acme  LLC']) n`,
  );
  expect(rows).toEqual([{ key: 'acme' }]);
});
