import { parseArgs } from 'node:util';

export const usage = `npm run demo -- [leads] [--keep] [--url URL …]
npm run demo -- books [FILE] [--keep]
npm run demo -- documents [FILE …] [--keep]
npm run demo -- articles [--url FEED-OR-SITEMAP …] [--keep]
npm run demo -- links [--sheet FILE.csv] [URL …] [--keep]
  leads      from web sites to outreach messages; this is what runs when nothing is named
  books      from a book's pages to one document with its table of contents
  documents  from files of any kind to their text, chunks, and a small knowledge graph
  articles   from feeds and sitemaps to reviewed and published articles
  links      from the links of a sheet and a data source to jobs and companies
  FILE       what to read instead of the samples: one PDF or plain text as a book, as many of any kind as documents
  --keep     stay up when it is finished, until Ctrl-C
  --url URL  run on these web sites, feeds or sitemaps instead of the samples; takes one URL or more, also inside your own
             network
  --sheet FILE.csv
             take the links in this file instead of the samples, as if it were a Google sheet
  --help     show this`;

export interface Arguments {
  demo: 'leads' | 'books' | 'documents' | 'articles' | 'links';
  keep: boolean;
  help: boolean;
  /** Web sites to run the leads on, or feeds and sitemaps for the articles; none means the samples. */
  urls: URL[];
  /** A file of links for the links; null means the samples, or the URLs alone. */
  sheet: string | null;
  /** Paths of the book or the documents; none means the samples. */
  files: string[];
}

/** Reads the command line. Throws an error that names the argument at fault and the remedy. */
export function readArguments(args: string[]): Arguments {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      url: { type: 'string', multiple: true, default: [] },
      sheet: { type: 'string' },
    },
  });
  const { keep, help, url, sheet = null } = values;
  const [first, ...others] = positionals;
  if (first === 'links') {
    return { demo: first, keep, help, urls: [...url.map(readUrl), ...others.map(readLink)], sheet, files: [] };
  }
  if (sheet !== null) throw new Error('--sheet belongs to the links: write npm run demo -- links --sheet FILE.csv');
  if (first === 'books' || first === 'documents') {
    if (url.length > 0)
      throw new Error(`--url belongs to the leads and the articles: to read files write them behind "${first}"`);
    if (first === 'books' && others.length > 1) throw new Error(`"${others[1]}" is one file too many: name one book`);
    return { demo: first, keep, help, urls: [], sheet, files: others };
  }
  const demo = first === 'articles' ? 'articles' : 'leads';
  const rest = first === demo ? others : positionals;
  if (rest.length > 0 && url.length === 0) {
    const what = demo === 'articles' ? 'a feed or sitemap' : 'a web site';
    const isName = demo === 'leads' && /^\w+$/.test(rest[0] as string);
    const isNot = isName ? 'is no demo, which are leads, books, documents, articles and links' : 'is no option';
    throw new Error(`"${rest[0]}" ${isNot}: to run on ${what} write --url ${rest[0]}`);
  }
  return { demo, keep, help, urls: [...url, ...rest].map(readUrl), sheet, files: [] };
}

function readUrl(text: string): URL {
  return readAddress(text, `--url got "${text}", which is no web address`, '');
}

/** A link stands without an option before it. */
function readLink(text: string): URL {
  return readAddress(text, `"${text}" is no web address`, ', or --sheet before a file');
}

function readAddress(text: string, fault: string, otherwise: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new Error(`${fault}: write it in full, such as https://example.com${otherwise}`);
}
