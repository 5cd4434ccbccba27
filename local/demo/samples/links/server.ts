import { type Context, Hono } from 'hono';
import { listen, type Service } from '../../../services/http/listen.ts';
import { jobPage, otherPages, postPage } from './pages.ts';
import { type Posting, postings, posts } from './postings.ts';

/** The sample boards while they run, each a host of its own, since pages of one host are fetched one after the other. */
export interface Boards {
  /** A board's address by its number. */
  urls: string[];
  /** The addresses of jobs and posts. */
  jobs: string[];
  posts: string[];
  stop(): Promise<void>;
}

const boards = 24;
/** How often the board that answers 429 refuses each address. */
const refusals = 1;
const robots = 'User-agent: *\nDisallow: /closed-to-programs/\n';

/** Serves the sample boards and what goes wrong on real ones, on free ports of the loopback interface. */
export async function startBoards(): Promise<Boards> {
  const services = await Promise.all(Array.from({ length: boards }, (_, board) => startBoard(board)));
  const urls = services.map(({ url }) => url);
  const at = (index: number) => urls[index % boards] as string;
  return {
    urls,
    jobs: postings.map((_, index) => `${at(index)}/jobs/${index + 1}`),
    posts: posts.map((_, index) => `${at(index)}/posts/${index + 1}`),
    async stop() {
      await Promise.all(services.map((service) => service.stop()));
    },
  };
}

function startBoard(board: number): Promise<Service> {
  const app = new Hono({ strict: false });
  app.get('/robots.txt', (c) => c.text(robots));
  app.get('/', (c) => c.html(otherPages.front));
  addFaults(app);
  app.get('/jobs/:id', (c) => {
    const index = Number(c.req.param('id')) - 1;
    const job = index % boards === board ? postings[index] : undefined;
    return job ? c.html(jobPage(job, addressOf(c))) : c.notFound();
  });
  app.get('/posts/:id', (c) => {
    const post = posts[Number(c.req.param('id')) - 1];
    return post ? c.html(postPage(post)) : c.notFound();
  });
  return listen(app.fetch);
}

/** Adds the faulty answers that real boards give at times, each at a path of its own. */
function addFaults(app: Hono): void {
  const refused = new Map<string, number>();
  app.get('/jobs/withdrawn', (c) => c.text('Gone.', 410));
  app.get('/jobs/filled', (c) => c.html(otherPages.closed));
  app.get('/jobs/moved', (c) => c.redirect('/'));
  app.get('/jobs/over', (c) => c.html(jobPage(postings[0] as Posting, addressOf(c), '2026-01-31')));
  app.get('/jobs/guarded', (c) => c.html(otherPages.captcha));
  app.get('/jobs/members', (c) => c.redirect('/login'));
  app.get('/login', (c) => c.html(otherPages.login));
  app.get('/closed-to-programs/jobs/1', (c) => c.html(jobPage(postings[1] as Posting, addressOf(c))));
  app.get('/jobs/leaflet', (c) => c.body('%PDF-1.4', 200, { 'content-type': 'application/pdf' }));
  app.get('/jobs/:name{busy-[0-9]+}', (c) => {
    const times = refused.get(c.req.path) ?? 0;
    refused.set(c.req.path, times + 1);
    if (times < refusals) return c.text('Later, please.', 429, { 'retry-after': '1' });
    const title = `Bridge painter, bridge ${c.req.param('name').replace('busy-', '')}`;
    return c.html(jobPage({ ...(postings[2] as Posting), title }, addressOf(c)));
  });
}

/** Returns the address of a request without the parameters that sharing adds. */
function addressOf(c: Context): string {
  const { origin, pathname } = new URL(c.req.url);
  return `${origin}${pathname}`;
}
