import { parseArgs } from 'node:util';

export const usage = `npm run demo -- [--keep] [--url URL …]
  --keep     stay up when the leads are finished, until Ctrl-C
  --url URL  run on these web sites instead of the samples; takes one URL or more, also inside your own network
  --help     show this`;

export interface Arguments {
  keep: boolean;
  help: boolean;
  /** Web sites to run on; none means the sample sites. */
  urls: URL[];
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
  if (positionals.length > 0 && values.url.length === 0) {
    throw new Error(`"${positionals[0]}" is no option: to run on a web site write --url ${positionals[0]}`);
  }
  return { keep: values.keep, help: values.help, urls: [...values.url, ...positionals].map(readUrl) };
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new Error(`--url got "${text}", which is no web address: write it in full, such as https://example.com`);
}
