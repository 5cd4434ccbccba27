import fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { functionTroubles } from '../../local/demo/function-troubles.ts';
import { readArguments } from '../../local/demo/read-arguments.ts';
import { startSites } from '../../local/demo/samples/sites/server.ts';
import { demoSettings } from '../../local/demo/settings.ts';
import { isRunning } from '../../local/platform/child-processes.ts';
import { listen } from '../../local/services/http/listen.ts';
import { refuseKeptByNpm } from '../../tools/command-arguments.ts';
import { demoHere, temporaryFolder } from './demo-here.ts';
import { runNode } from './run-command.ts';

let temporary: string;

beforeEach(() => {
  temporary = temporaryFolder();
});
afterEach(() => {
  fs.rmSync(temporary, { recursive: true, force: true });
});

/** A folder of its own for temporary files, and no settings but the defaults. */
const settings = () => ({ TMPDIR: temporary, LLM_URL: '', LLM_MODEL: '', SCRAPER_ALLOW_HOSTS: '' });

/** Runs `npm run demo`. */
function runDemo(...args: string[]) {
  return runNode(['tools/bootstrap.mjs', 'local/demo/demo.ts', ...args], { env: settings(), timeoutMs: 110_000 });
}

/** The leftovers that the demo has left in its folder: data of the stack, and processes that were started with it. */
function leftovers(): string[] {
  const folders = fs.readdirSync(temporary).filter((name) => name.startsWith('millrace'));
  const processes = fs.readdirSync('/proc').filter((name) => {
    try {
      return isRunning(Number(name)) && fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(temporary);
    } catch {
      return false;
    }
  });
  return [...folders, ...processes];
}

describe.runIf(process.platform === 'linux')('npm run demo', () => {
  it('writes a message for each sample site, says why the broken ones have none, and leaves nothing behind', async () => {
    const sites = await startSites();
    const companies = sites.hosts.length;
    await sites.stop();
    const { code, stdout, stderr } = await runDemo();
    expect(code, `${stdout}${stderr}`).toBe(0);
    expect(stdout).toContain("update leads set scrape_status = 'queued';");
    expect(stdout).toMatch(new RegExp(`messaging +${companies} completed`));
    expect(stdout.match(/^ +→ /gm)).toHaveLength(companies);
    expect(stdout).toMatch(/no-such-company\.invalid.*\n.*scrape failed: .*does not exist/);
    expect(stdout).toMatch(/faults\/404.*\n.*scrape failed: [\s\S]*?status\s+404/);
    expect(stdout).toMatch(/Leads +9, 7 with a message/);
    expect(stdout).toMatch(/Tokens +[1-9][\d,]* in, [1-9][\d,]* out/);
    expect(stdout).toMatch(
      /5\. What it cost, by account\n\n? *account_id +leads +completed +cost_usd\n +[-0-9a-f]{36} +9 +7 +\$0\n/,
    );
    expect(stdout).toContain('millrace.check_invariants(): no violation');
    expect(stdout).toMatch(/Health +public\.millrace_health\(\): (all is well|\d+ things? (is|are) not well\n +\S)/);
    expect(stdout).not.toContain('\x1b[');
    expect(leftovers()).toEqual([]);
  });

  it('runs on a site named with --url though it is in the own network, and fails when such a lead has no message', async () => {
    const paragraph = '<p>Our nets are knotted by hand in the harbour, and mended for life at no charge.</p>';
    const site = await listen((request: Request) =>
      new URL(request.url).pathname === '/'
        ? new Response(`<title>Netmakers</title><main><h1>Nets that last</h1>${paragraph.repeat(5)}</main>`, {
            headers: { 'content-type': 'text/html' },
          })
        : new Response('', { status: 404 }),
    );
    try {
      const { code, stdout, stderr } = await demoHere(['--url', `${site.url}/`, `${site.url}/gone`], settings());
      expect(code, `${stdout}${stderr}`).toBe(1);
      expect(stdout).toMatch(/Leads +2, 1 with a message/);
      expect(stdout).toMatch(/✗ .*\/gone\n.*scrape failed: .*status 404/);
      expect(stdout).not.toContain('broken on purpose');
      expect(leftovers()).toEqual([]);
    } finally {
      await site.stop();
    }
  });

  it('ends at once where the model refuses its key or is nowhere, naming setting, address and stage', async () => {
    const refusing = await listen(() => Response.json({ error: { message: 'Incorrect key' } }, { status: 401 }));
    const real = { ...settings(), LLM_MODEL: 'writer' };
    try {
      const { code, stdout, stderr } = await demoHere([], { ...real, LLM_URL: refusing.url, LLM_AUTH_TOKEN: 'wrong' });
      expect(code).toBe(1);
      expect(stdout).toMatch(/first error at scrape: .*\(\w+\)\n/);
      expect(stderr).toBe(
        'Stage intel of leads cannot work: The model refused LLM_AUTH_TOKEN: correct it. 401 Incorrect key (misconfigured)\n' +
          'The demo ends here: correct the setting, here or in .env, and start it again.\n',
      );
    } finally {
      await refusing.stop();
    }
    const nowhere = await demoHere([], { ...real, LLM_URL: refusing.url });
    expect(nowhere.code).toBe(1);
    expect(nowhere.stderr).toContain(`The model at LLM_URL (${refusing.url}) cannot be reached`);
    expect(nowhere.stderr).toMatch(/^Stage intel of leads cannot work: .*\(model_unreachable\)\nThe demo ends here/);
    expect(leftovers()).toEqual([]);
  });

  it.each([
    ['LLM_URL', 'localhost:9999', 'set the base URL of an OpenAI-compatible API'],
    ['GRAPHITI_URL', 'graphiti', 'write it in full'],
  ])('refuses a %s that is no URL before anything starts', async (name, value, remedy) => {
    const { code, stdout, stderr } = await demoHere([], { ...settings(), LLM_MODEL: 'writer', [name]: value });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(`${name} must be a URL that begins with http:// or https://: ${remedy}`);
  });

  it('ends with 2 at arguments it does not understand, before it starts anything', async () => {
    const misspelt = await runDemo('--kep');
    expect(misspelt).toMatchObject({ code: 2, stdout: '' });
    expect(misspelt.stderr).toMatch(
      /^Unknown option '--kep'\.\n\nnpm run demo -- \[leads\] \[--keep\] \[--url URL …\]/,
    );
  });
});

describe('the arguments', () => {
  it.each(['keep', 'url'])('--%s without the "--" before it, which npm keeps for itself, is refused', (option) => {
    const refuse = (environment: Record<string, string>) => () => refuseKeptByNpm('demo', ['keep', 'url'], environment);
    expect(refuse({ [`npm_config_${option}`]: 'true' })).toThrow(`write "npm run demo -- --${option}"`);
    expect(refuse({ npm_config_prefix: '/usr' })).not.toThrow();
  });

  it.each([
    [['https://example.com'], 'to run on a web site write --url https://example.com'],
    [['linkz'], '"linkz" is no demo, which are leads, books, documents, articles and links: to run on'],
    [['--url', 'ftp://example.com'], '--url got "ftp://example.com"'],
    [['--url', 'https://example.com', 'nonsense'], '--url got "nonsense"'],
    [['--url', 'example.com'], '--url got "example.com", which is no web address: write it in full'],
    [['--fast'], '--fast'],
  ])('%j are refused, naming the one at fault', (args, message) => {
    expect(() => readArguments(args)).toThrow(message);
  });

  it('take several URLs after --url', () => {
    const { urls, keep } = readArguments(['--keep', '--url', 'https://example.com', 'http://127.0.0.1:8080/shop']);
    expect(urls.map(String)).toEqual(['https://example.com/', 'http://127.0.0.1:8080/shop']);
    expect(keep).toBe(true);
  });
});

describe('the settings', () => {
  const real = { LLM_URL: 'https://model.example/v1', LLM_MODEL: 'writer' };

  it.each([
    ['LLM_URL', 'LLM_MODEL'],
    ['LLM_MODEL', 'LLM_URL'],
  ] as const)('%s without %s leaves the local model, and the user is told', (set, missing) => {
    const { env, warnings } = demoSettings({ [set]: real[set] });
    expect(env).not.toHaveProperty(set);
    expect(warnings).toEqual([
      `${set} is set but ${missing} is not, so the local model writes: set both to use a real one.`,
    ]);
  });

  it.each(['leads', 'books'] as const)('give the model of the demo %s the prices that the user names', (demo) => {
    expect(demoSettings({}, demo).env).toEqual({ LLM_PRICE_INPUT: '0', LLM_PRICE_OUTPUT: '0' });
    const prices = { LLM_PRICE_INPUT: '0.25', LLM_PRICE_OUTPUT: '2' };
    expect(demoSettings(prices, demo).env).toEqual(prices);
    expect(demoSettings({ ...real, ...prices }, demo).env).toEqual({ ...real, ...prices });
  });

  it('of a real model are used, without a warning', () => {
    const { env, warnings, modelNote } = demoSettings(real);
    expect(env).toEqual(real);
    expect(warnings).toEqual([]);
    expect(modelNote).toEqual(['The model writer at https://model.example/v1 writes.']);
  });

  it('of another scraper are ignored, and the user is told', () => {
    const { env, warnings } = demoSettings({ ...real, SCRAPER_URL: 'https://scraper.example' });
    expect(env).toEqual(real);
    expect(warnings).toEqual([expect.stringMatching(/^SCRAPER_URL is ignored/)]);
  });
});

it('of what the functions write, warnings, errors and what is no report are kept, the last twenty', () => {
  const troubles = functionTroubles();
  const report = (level: string, message: string) =>
    JSON.stringify({ level, message, pipeline: 'leads', stage: 'intel', status: 503 });
  troubles.add('leads-intel', report('warn', 'early'));
  for (let n = 0; n < 18; n++) troubles.add('leads-intel', report('error', 'again'));
  troubles.add('leads-intel', report('info', 'drained'));
  troubles.add('leads-intel', report('warn', 'a wake-up was refused'));
  troubles.add('leads-intel', 'error: Uncaught SyntaxError');
  expect(troubles.lines()).toHaveLength(20);
  troubles.add('leads-intel', report('error', 'last'));
  expect(troubles.lines()[0]).toBe('leads-intel: error, again, status 503');
  expect(troubles.lines().slice(-3)).toEqual([
    'leads-intel: warn, a wake-up was refused, status 503',
    'leads-intel: error: Uncaught SyntaxError',
    'leads-intel: error, last, status 503',
  ]);
  const printed: string[] = [];
  troubles.follow((line) => printed.push(line));
  troubles.add('leads-intel', report('info', 'drained'));
  troubles.add('leads-intel', 'error: Uncaught Error: bad deploy');
  expect(printed, 'a demo that is kept prints what comes').toEqual(['leads-intel: error: Uncaught Error: bad deploy']);
});
