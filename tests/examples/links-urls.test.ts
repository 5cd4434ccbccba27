import { readFile } from 'node:fs/promises';
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
    'https://www.linkedin.com/comm/jobs/view/3912345678?trackingId=x&midToken=y',
    'https://www.linkedin.com/jobs-guest/jobs/api/jobPosting/3912345678',
    'https://www.linkedin.com/jobs/view/3912345678\u200b',
  ],
  [
    post,
    'https://www.linkedin.com/posts/some-one_hiring-weavers-activity-7190000000000000001-AbCd?utm_source=share',
    'linkedin.com/feed/update/urn%3Ali%3Aactivity%3A7190000000000000001/',
    'https://www.linkedin.com/embed/feed/update/urn:li:activity:7190000000000000001?collapsed=1',
  ],
  [
    'https://www.linkedin.com/feed/update/urn:li:share:7190000000000000002',
    'https://www.linkedin.com/embed/feed/update/urn:li:share:7190000000000000002',
  ],
  [
    indeed,
    'https://de.indeed.com/viewjob?from=serp&jk=0A1B2C3D4E5F6071',
    'https://indeed.com/jobs?q=x&vjk=0a1b2c3d4e5f6071',
  ],
  [lever, 'https://jobs.lever.co/acme/0F8FAD5B-D9CB-469F-A165-70867728950E/apply?lever-source=x'],
  [
    'https://boards.greenhouse.io/acme/jobs/4012345',
    'https://job-boards.greenhouse.io/acme/jobs/4012345?gh_src=x#app',
    'https://boards.greenhouse.io/embed/job_app?for=acme&token=4012345&utm_source=x',
  ],
  [
    'https://boards.eu.greenhouse.io/acme/jobs/4012345',
    'https://job-boards.eu.greenhouse.io/embed/job_app?token=4012345&for=acme',
  ],
  [
    'https://xn--mnchen-3ya.example/B%C3%A4cker/~jo?q=%C3%A9&r=a%2Fb',
    'http://MÜNCHEN.example./Bäcker/%7Ejo?r=a%2fb&q=e%CC%81&ref_src=x',
    'https://mu\u0308nchen。example:443/./B%c3%a4cker/x/../~jo/?q=é&r=a%2Fb&srsltid=1',
    '\u00a0https://xn--mnchen-3ya.example:80/Ba\u0308cker/%7ejo?q=%c3%a9&r=a%2Fb\u2060\ufeff',
  ],
  ['https://example.com/a%20b%25c', 'https://example.com/a%20b%25c/', 'https://example.com/x/%2e%2E/a%20b%25c'],
  ['https://example.com/%FF', 'https://example.com/%ff'],
  ['https://example.com/100%', 'https://example.com/100%/'],
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

test('a host is written as name servers know it, as the WHATWG’s URL has it', async ({ engine }) => {
  const letters = fc.constantFrom(...'aäßéñøžяж中文字日本한글ไทย0-'.replaceAll('-', ''), 'ü', 'q');
  const labels = fc.array(letters, { minLength: 1, maxLength: 12 }).map((some) => some.join(''));
  const hosts = fc.sample(labels, 500).map((label) => `a${label}.test`);
  const { rows } = await engine.sql.query(
    'select h as host, public.canonical_host(h) as made from unnest($1::text[]) h',
    [hosts],
  );
  const wrong = rows.filter(({ host, made }) => new URL(`https://${host}/`).hostname !== made);
  expect(wrong).toEqual([]);
});

test('a path and query of any letters keep what they say, and are written in one way', async ({ engine }) => {
  const part = fc.constantFrom(
    ...['/', 'a', 'é', '%C3%A9', '%2F', '%3a', '.', '..', '~', ' ', '中', '%zz', '😀', '=', '+'],
  );
  const paths = fc
    .sample(fc.array(part, { maxLength: 10 }), 1000)
    .map((some) => `/x${some.join('').replaceAll(' ', '%20')}`);
  const { rows } = await engine.sql.query(
    `select p as path, public.canonical_address('https://a.test' || p) as made,
       public.canonical_address('https://a.test' || replace(p, '%', '%')) as again from unnest($1::text[]) p`,
    [paths],
  );
  const plain = (address: string) => {
    const { pathname } = new URL(address);
    return decodeURI(pathname.replaceAll(/%(?![0-9a-f]{2})/gi, '%25'))
      .replace(/\/+$/, '')
      .normalize('NFC')
      .toUpperCase();
  };
  const wrong = rows.filter(({ path, made }) => plain(`https://a.test${path}`) !== plain(made));
  expect(wrong).toEqual([]);
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

test('companies that are named by signs alone differ, and a legal form of several parts is one', async ({ engine }) => {
  const keys = (...names: string[]) =>
    engine.rows('select distinct public.company_key(n) as key from unnest($1::text[]) n order by key', [names]);
  expect(await keys('★', '◆', '???', '!!!')).toHaveLength(4);
  expect(await keys('Acme GmbH & Co. KG', 'ACME GmbH & Co KGaA', 'Acme Co., Ltd.', 'Acme AG', 'acme')).toEqual([
    { key: 'acme' },
  ]);
  expect(await keys('Acme GmbH und Co. KG', 'Acme GmbH + Co. KG', 'Acme GmbH&Co.KG', 'Acme')).toEqual([
    { key: 'acme' },
  ]);
  expect(await keys('C++', 'C# Ltd', 'C', 'A+B', 'A + B')).toEqual([
    { key: 'a b' },
    { key: 'c' },
    { key: 'c#' },
    { key: 'c++' },
  ]);
  expect(await keys('AG', 'Kg & Sons', 'C&A')).toEqual([{ key: 'ag' }, { key: 'c a' }, { key: 'kg sons' }]);
});

test('links and companies that become equal are merged, and nothing that they had is lost', async ({ engine }) => {
  const { sql } = engine;
  const migration = await readFile('supabase/migrations/20261128091000_addresses_links.sql', 'utf8');
  await sql.query('begin');
  // As they were before: every spelling a link, every name a company.
  await sql.query(`
    alter table public.link_events drop column details;
    alter table public.companies drop column merged;
    create or replace function public.canonical_url(p_text text) returns text language sql immutable as 'select p_text';
    create or replace function public.company_key(p_name text) returns text language sql immutable as 'select p_name';
    insert into public.linkedin_links (raw_url) values
      ('https://a.test/caf%C3%A9'), ('https://a.test/cafe%cc%81'), ('https://a.test/café/./'), ('https://a.test/other');
    insert into public.companies (name, website, size) values
      ('Acme GmbH', null, '10'), ('Acme GmbH & Co. KG', 'https://acme.test', '12');
    insert into public.jobs (link_id, company_id, title, salary)
    select l.id, c.id, l.raw_url, case when l.raw_url like '%./' then '80,000' end from public.linkedin_links l, public.companies c
    where (l.raw_url, c.name) in (('https://a.test/cafe%cc%81', 'Acme GmbH & Co. KG'), ('https://a.test/café/./', 'Acme GmbH'));
    insert into public.linkedin_jobs_raw (link_id, fetched_at, http_status, raw_html)
    select id, now(), 200, '\\x00ff' from public.linkedin_links where raw_url = 'https://a.test/caf%C3%A9'`);
  await sql.query(migration);
  const all = async (query: string) => (await sql.query(query)).rows;
  expect(await all('select raw_url, canonical_url from public.linkedin_links order by id')).toEqual([
    { raw_url: 'https://a.test/cafe%cc%81', canonical_url: 'https://a.test/caf%C3%A9' },
    { raw_url: 'https://a.test/other', canonical_url: 'https://a.test/other' },
  ]);
  expect(
    await all(`select details #>> '{link,raw_url}' as url, details #>> '{jobs_raw,raw_html}' as html, details #>> '{job,salary}' as paid, details #>> '{history,0,to_status}' as word
      from public.link_events where event = 'link.merged' order by id`),
  ).toEqual([
    { url: 'https://a.test/caf%C3%A9', html: '\\x00ff', paid: null, word: 'new' },
    { url: 'https://a.test/café/./', html: null, paid: '80,000', word: 'new' },
  ]);
  // Each link said that it was new: so does the kept one, for all.
  expect(
    await all(`select count(*)::int from public.link_events where event = 'link.new' group by link_id order by 1`),
  ).toEqual([{ count: 1 }, { count: 3 }]);
  expect(
    await all(
      'select title, salary, link_id is null as apart, c.name from public.jobs j join public.companies c on c.id = company_id order by title',
    ),
  ).toEqual([{ title: 'https://a.test/cafe%cc%81', salary: '80,000', apart: false, name: 'Acme GmbH' }]);
  // The engine has ended the runs of the rows that are gone, and knows of none without its row.
  expect(
    await all(`select r.status, count(*)::int from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id and p.name = 'links'
      where not exists (select from public.linkedin_links l where l.id::text = r.entity_id) and r.status = 'running' group by 1`),
  ).toEqual([]);
  expect(await all('select * from millrace.check_invariants()')).toEqual([]);
  expect(await all(`select name, name_key, website, size, merged #>> '{0,size}' as was from public.companies`)).toEqual(
    [{ name: 'Acme GmbH', name_key: 'acme', website: 'https://acme.test', size: '10', was: '12' }],
  );
  await sql.query('rollback');
});

test('spellings of a company’s name meet', async ({ engine }) => {
  const { rows } = await engine.sql.query(
    `select distinct public.company_key(n) as key from unnest(array['ACME Inc.', 'Acme, Inc', 'acme', ' Acme  LLC']) n`,
  );
  expect(rows).toEqual([{ key: 'acme' }]);
});
