import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Hono } from 'hono';
import { listen } from '../../../services/http/listen.ts';
import { faultPages } from './fault-pages.ts';

/** The sample sites while they run. */
export interface Sites {
  /** Base of the index of all sites and of the pages under /faults/. */
  url: string;
  /** Each sample site with a base URL of its own, since robots.txt belongs to a whole origin. */
  hosts: { name: string; url: string }[];
  stop(): Promise<void>;
}

const pagesFolder = new URL('./pages/', import.meta.url);
const redirects: Record<string, Record<string, string>> = { joinery: { '/': '/home' } };

/** Serves the sample sites and the fault pages on free ports of the loopback interface. */
export async function startSites(): Promise<Sites> {
  const names = (await readdir(fileURLToPath(pagesFolder))).sort();
  const sites = await Promise.all(
    names.map(async (name) => ({ name, ...(await listen((await siteApp(name)).fetch)) })),
  );
  const hosts = sites.map(({ name, url }) => ({ name, url }));
  const app = faultPages();
  app.get('/', (c) =>
    c.html(`<ul>${hosts.map(({ name, url }) => `<li><a href="${url}/">${name}</a></li>`).join('')}</ul>`),
  );
  const index = await listen(app.fetch);
  return {
    url: index.url,
    hosts,
    async stop() {
      await Promise.all([index, ...sites].map((service) => service.stop()));
    },
  };
}

async function siteApp(name: string): Promise<Hono> {
  const app = new Hono();
  for (const [from, to] of Object.entries(redirects[name] ?? {})) app.get(from, (c) => c.redirect(to));
  const folder = new URL(`${name}/`, pagesFolder);
  for (const file of await readdir(fileURLToPath(folder))) {
    const content = await readFile(new URL(file, folder));
    const page = file.replace(/\.html$/, '');
    // No charset in the header: the page's own meta tag tells it, as on many real sites.
    const type = file.endsWith('.html') ? 'text/html' : 'text/plain; charset=utf-8';
    app.get(page === 'index' ? '/' : `/${page}`, (c) => c.body(new Uint8Array(content), 200, { 'content-type': type }));
  }
  return app;
}
