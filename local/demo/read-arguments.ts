import { parseArgs } from 'node:util';

export const usage = `npm run demo -- [leads] [--keep] [--url URL …]
npm run demo -- books [FILE] [--keep]
  leads      from web sites to outreach messages; this is what runs when nothing is named
  books      from a book's pages to one document with its table of contents
  FILE       a PDF or a plain text to read instead of the sample book
  --keep     stay up when it is finished, until Ctrl-C
  --url URL  run on these web sites instead of the samples; takes one URL or more, also inside your own network
  --help     show this`;

export interface Arguments {
  demo: 'leads' | 'books';
  keep: boolean;
  help: boolean;
  /** Web sites to run the leads on; none means the sample sites. */
  urls: URL[];
  /** Path of the book; none means the sample book. */
  file?: string;
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
    },
  });
  const { keep, help, url } = values;
  const [demo, ...rest] =
    positionals[0] === 'leads' || positionals[0] === 'books' ? positionals : ['leads', ...positionals];
  if (demo === 'books') {
    if (url.length > 0) throw new Error('--url belongs to the leads: to read a book write its file behind "books"');
    if (rest.length > 1) throw new Error(`"${rest[1]}" is one file too many: name one book`);
    return { demo, keep, help, urls: [], file: rest[0] };
  }
  if (rest.length > 0 && url.length === 0) {
    throw new Error(`"${rest[0]}" is no option: to run on a web site write --url ${rest[0]}`);
  }
  return { demo: 'leads', keep, help, urls: [...url, ...rest].map(readUrl) };
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new Error(`--url got "${text}", which is no web address: write it in full, such as https://example.com`);
}
