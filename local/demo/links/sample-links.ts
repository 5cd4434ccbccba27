import type { Boards } from '../samples/links/server.ts';

/** A link as a sheet or a data source has it. */
export interface SampleLink {
  link: string;
  note: string;
}

/** The sample links by their outcome: most are read, some cannot be, some only at the second try. */
export interface Samples {
  sheet: SampleLink[];
  pages: SampleLink[];
  /** Links that are entered by hand, last: a board that answers 429 slows all the others, too. */
  busy: string[];
  /** The links that cannot become a job, by their addresses. */
  broken: Set<string>;
}

/** Links of which no job can be made, and why. */
const faults: [path: string, note: string][] = [
  ['/jobs/withdrawn', 'withdrawn by the board'],
  ['/jobs/4711', 'never was there'],
  ['/jobs/leaflet', 'is a PDF'],
  ['/jobs/filled', 'says that the position is filled'],
  ['/jobs/moved', 'leads to the front page now'],
  ['/jobs/over', 'ended in January'],
  ['/jobs/guarded', 'asks for a captcha'],
  ['/jobs/members', 'asks for a log-in'],
  ['/closed-to-programs/jobs/1', 'closed by robots.txt'],
];

/** How people write the same address again. */
const spellings: ((url: string) => string)[] = [
  (url) => `${url}?utm_source=newsletter&utm_medium=mail`,
  (url) => `${url}/`,
  (url) => `${url}#apply`,
  (url) => url.replace('http://', 'HTTP://'),
  (url) => `  ${url}?fbclid=colleague `,
];

/** Sixty links: 43 different ones in two lists, fourteen of them in another spelling too, and three by hand. */
export function sampleLinks({ urls, jobs, posts }: Boards): Samples {
  const [board = ''] = urls;
  const known = [...jobs, ...posts].map((link, index) => ({
    link,
    note: index < jobs.length ? 'a job' : 'a post',
  }));
  const broken = [
    ...faults.map(([path, note], index) => ({ link: `${urls[index % urls.length]}${path}`, note })),
    { link: 'see the mail of last Tuesday', note: 'no address at all' },
    { link: 'http://10.0.0.7/jobs/1', note: 'inside of a network' },
    { link: `${board}/unknown/page`, note: 'an address that tells no kind' },
  ];
  const busy = [1, 2, 3].map((id) => `${urls[id]}/jobs/busy-${id}`);
  const again = known.slice(0, 14).map(({ link }, index) => ({
    link: (spellings[index % spellings.length] as (typeof spellings)[number])(link),
    note: 'another spelling',
  }));
  const sheet = [...known.slice(0, 22), ...again.slice(0, 5), ...broken.slice(0, 6)];
  const pages = [...known.slice(22), ...again.slice(5), ...broken.slice(6)];
  return { sheet, pages, busy, broken: new Set(broken.map(({ link }) => link)) };
}
