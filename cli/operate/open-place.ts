// Leads to a place of the operator's page: prints its address, and opens it in a browser where somebody sits at the terminal.
import { spawn } from 'node:child_process';
import { CommandError } from '../command-error.ts';
import type { Command } from '../define-command.ts';
import { keepPage } from '../project/keep-page.ts';
import { type Context, type Definition, defined, defineOperate } from './context.ts';
import { say } from './say.ts';

/** How long the page may take to answer. */
const answerMs = 3_000;

interface Placed extends Definition {
  /** Returns the place of the page, such as `run/42`; undefined where a word is missing, which the command says itself. */
  place(context: Context): string | undefined;
}

/** Makes a command of which `--web` leads to the place of the page that shows the same. */
export function definePlaced({ usage, takes, place, run, words }: Placed): Command {
  return defineOperate({
    usage: `${usage}\n  -w, --web  opens the place of the operator's page that shows the same`,
    takes: [...takes, 'web'],
    words,
    run: (context) => {
      const at = context.values.web ? place(context) : undefined;
      return at === undefined ? run(context) : openPlace(context, at);
    },
  });
}

/** Returns a place with what it is to filter by, such as `runs?pipeline=orders`. */
export function placeOf(screen: string, filter: Record<string, unknown> = {}): string {
  const given = Object.entries(defined(filter)).map(([name, value]) => [name, String(value)]);
  const query = new URLSearchParams(given).toString();
  return query ? `${screen}?${query}` : screen;
}

/** Throws a CommandError where no page of the project answers. */
async function openPlace(context: Context, place: string): Promise<0> {
  const { url: project, headers } = context.target;
  const page = await keepPage(project, headers, null);
  const url = `${page}#/${place}`;
  if (!page || !(await answers(page))) {
    const missing = page ? `The operator’s page does not answer at ${page}` : 'The project knows no operator’s page';
    throw new CommandError(`${missing}: npx millrace open serves it while it runs.`);
  }
  say(context, { url }, () => [url]);
  if (process.stdout.isTTY) browse(url);
  return 0;
}

async function answers(page: string): Promise<boolean> {
  try {
    return (await fetch(page, { signal: AbortSignal.timeout(answerMs) })).ok;
  } catch {
    return false;
  }
}

/** Opens an address in a browser. Without a browser nothing happens: the address was printed. */
function browse(url: string): void {
  const programs: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
    darwin: ['open'],
    win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  };
  const [program, ...args] = programs[process.platform] ?? ['xdg-open'];
  spawn(program, [...args, url], { detached: true, stdio: 'ignore' })
    .once('error', () => {})
    .unref();
}
