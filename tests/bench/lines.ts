// Lines of the benchmark that need a whole stack each: every line in a process of its own, round by round, of this checkout and of
// another one beside it.
import { fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { startWatchdog } from '../../local/platform/watchdog.ts';
import type { News, Order } from './line-main.ts';
import { type Measured, median, type Values } from './results.ts';

export interface Line extends Order {
  name: string;
}

export interface LineChoice {
  /** A part of the names of the lines to measure. */
  only: string | undefined;
  rounds: number;
  /** The folder of another checkout, with its node_modules. */
  beside: string | undefined;
  /** Hears of each line as it ends. */
  progress(message: string): void;
}

interface Checkout {
  engine: string;
  folder: string;
  remove(): void;
}

/** Measures the lines in turn, each in each checkout; resolves to the median of each column. */
export async function measureLines(work: string, lines: Line[], choice: LineChoice): Promise<Measured[]> {
  const chosen = lines.filter(({ name }) => name.includes(choice.only ?? ''));
  if (chosen.length === 0) {
    throw new Error(
      `--only is "${choice.only}", but must be a part of ${lines.map(({ name }) => `"${name}"`).join(', ')}.`,
    );
  }
  const checkouts: Checkout[] = [{ engine: 'millrace', folder: import.meta.dirname, remove: () => {} }];
  if (choice.beside !== undefined) checkouts.push(copyInto(path.resolve(choice.beside)));
  const measured = new Map<string, Measured[]>();
  try {
    for (let turn = 1; turn <= choice.rounds; turn += 1) {
      for (const { name, ...order } of chosen) {
        for (const { engine, folder } of checkouts) {
          const one = { work, engine, line: name, values: await inProcess(folder, order) };
          const key = JSON.stringify([engine, name]);
          measured.set(key, [...(measured.get(key) ?? []), one]);
          choice.progress(`${work} ${turn}/${choice.rounds}: ${described(one)}`);
        }
      }
    }
  } finally {
    for (const { remove } of checkouts) remove();
  }
  return [...measured.values()].map(middle);
}

/** Copies the benchmark into another checkout, so that its imports are that one's. */
function copyInto(checkout: string): Checkout {
  const folder = path.join(checkout, 'tests', `bench-beside-${process.pid}`);
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  const filter = (source: string) => path.basename(source) !== 'node_modules';
  fs.cpSync(import.meta.dirname, folder, { recursive: true, filter });
  const remove = () => {
    watchdog.dismiss();
    fs.rmSync(folder, { recursive: true });
  };
  return { engine: 'beside', folder, remove };
}

function inProcess(folder: string, order: Order): Promise<Values> {
  const child = fork(path.join(folder, 'line-main.ts'), { cwd: path.join(folder, '..', '..') });
  return new Promise((resolve, reject) => {
    let news: News | undefined;
    child.once('message', (told: News) => {
      news = told;
      child.disconnect();
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (!news) reject(new Error(`The process that measures ended with exit code ${code}.`));
      else if ('failed' in news) reject(new Error(news.failed));
      else resolve(news.values);
    });
    child.send(order);
  });
}

function described({ engine, line, values }: Measured): string {
  const columns = Object.entries(values).map(([column, value]) => {
    return `${column} ${typeof value === 'string' ? value : Number(value.toFixed(2))}`;
  });
  return `${engine}, ${line}: ${columns.join(' · ')}`;
}

function middle(rounds: Measured[]): Measured {
  const last = rounds.at(-1) as Measured;
  const columns = Object.entries(last.values).map(([column, value]) => {
    if (typeof value === 'string') return [column, value];
    return [column, median(rounds.map(({ values }) => Number(values[column])))];
  });
  return { ...last, values: Object.fromEntries(columns) };
}
