import type { Post, Posting } from './postings.ts';

/** Returns a page of a sample board, by how the board writes jobs; `ends` is the day after which it is over. */
export function jobPage(job: Posting, url: string, ends: string | null = null): string {
  const said = {
    Title: job.title,
    Company: job.company,
    Location: job.town,
    Salary: job.salary ? `${money(job.salary)} a year` : 'by agreement',
  };
  const body = `<main><h1>${job.title} wanted</h1>${labelled(said)}${described(job)}</main>`;
  return page(`${job.title} – ${job.company}`, headOf(job, url, ends), body);
}

/** Returns a page of a sample network. */
export function postPage({ author, text, offer }: Post): string {
  const title = `${author} on LinkedIn: ${text.slice(0, 40)}`;
  const head = `<meta property="og:title" content="${escaped(title)}">`;
  return page(title, head, `<main><p>${escaped(text)}</p>${labelled(offer ?? {})}</main>`);
}

/** Pages that a site shows in place of a job that is gone, or that it does not show to programs. */
export const otherPages = {
  front: page('Job board', '', '<main><h1>All jobs</h1><p>Choose a town to begin with.</p></main>'),
  closed: page('Closed', '', '<main><p>This position has been filled.</p></main>'),
  captcha: page('Security check', '', '<main><div class="h-captcha"></div></main>'),
  login: page('Log in', '', '<main><form><input name="user"></form></main>'),
};

function headOf(job: Posting, url: string, ends: string | null): string {
  const data = (value: object) => `<script type="application/ld+json">${JSON.stringify(value)}</script>`;
  const posting = postingOf(job, url, ends);
  const context = 'https://schema.org';
  if (job.shape === 'posting') return data({ '@context': context, ...posting });
  if (job.shape === 'graph') {
    return data({ '@context': context, '@graph': [{ '@type': 'WebSite', name: 'A board' }, posting] });
  }
  if (job.shape === 'list') {
    const other = postingOf({ ...job, title: 'Another job' }, `${url}-other`, ends);
    return data([other, posting].map((one) => ({ '@context': context, ...one })));
  }
  if (job.shape === 'text') return '';
  return `<meta property="og:title" content="${job.title} wanted"><meta property="og:description" content="${job.does}">`;
}

function postingOf(job: Posting, url: string, ends: string | null) {
  const [from, to] = job.salary ?? [];
  const value = { '@type': 'QuantitativeValue', minValue: from, maxValue: to, unitText: 'YEAR' };
  return {
    '@type': 'JobPosting',
    title: job.title,
    url,
    datePosted: '2026-11-01',
    ...(ends ? { validThrough: ends } : {}),
    description: described(job),
    hiringOrganization: { '@type': 'Organization', name: job.company },
    jobLocation: { '@type': 'Place', address: { addressLocality: job.town, addressCountry: 'GB' } },
    ...(job.salary ? { baseSalary: { '@type': 'MonetaryAmount', currency: 'GBP', value } } : {}),
  };
}

function described({ does }: Posting): string {
  return `<p>Whoever takes this job ${does}. Tools are there, and somebody shows how it is done.</p>`;
}

/** Writes lines that each begin with a label. */
function labelled(lines: Record<string, string>): string {
  return Object.entries(lines)
    .map(([name, value]) => `<p>${name}: ${escaped(value)}</p>`)
    .join('');
}

function money([from, to]: [number, number]): string {
  return `£${from.toLocaleString('en-GB')} to £${to.toLocaleString('en-GB')}`;
}

function page(title: string, head: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>${head}</head><body>${body}</body></html>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
