// Random writes to a table of memos, and the fates of the calls meanwhile: the same for the same seed, whatever follows the table.
import { randomUUID } from 'node:crypto';
import { randomNumbers } from '../engine/random-session.ts';
import type { Engine } from '../engine.ts';
import type { Fate } from './memos.ts';

const accounts = [1, 2, 3].map((at) => `00000000-0000-4000-8000-00000000000${at}`);
const vocabulary = Array.from({ length: 400 }, (_, at) => `word${at.toString(36)}`);

/** Users who write memos: new ones, edits, edits that are taken back, blank ones, deletions, moves to other accounts. */
export class MemoWriter {
  private readonly random: (bound: number) => number;
  private readonly bodies = new Map<string, { now: string; before: string }>();
  writes = 0;

  constructor(
    private readonly engine: Engine,
    private readonly table: string,
    seed: number,
  ) {
    this.random = randomNumbers(seed);
  }

  async write(): Promise<void> {
    this.writes++;
    const ids = [...this.bodies.keys()];
    const id = ids[this.random(ids.length)];
    const draw = this.random(100);
    if (id === undefined || draw < 15) return this.add();
    if (draw < 23) return this.remove(id);
    if (draw < 31) return this.ask('update %s set account_id = $2 where id = $1', [id, this.oneOf(accounts)]);
    const { now, before } = this.bodies.get(id) as { now: string; before: string };
    if (draw < 38) return this.edit(id, this.oneOf(['', ' \n\n']));
    if (draw < 46) return this.edit(id, before);
    if (draw < 50) return this.edit(id, now);
    return this.edit(id, this.changed(now));
  }

  private async add(): Promise<void> {
    const id = randomUUID();
    const body = Array.from({ length: 1 + this.random(6) }, () => this.paragraph()).join('\n\n');
    this.bodies.set(id, { now: body, before: body });
    await this.ask('insert into %s (id, account_id, body) values ($1, $2, $3)', [id, this.oneOf(accounts), body]);
  }

  private async remove(id: string): Promise<void> {
    this.bodies.delete(id);
    await this.ask('delete from %s where id = $1', [id]);
  }

  private async edit(id: string, body: string): Promise<void> {
    this.bodies.set(id, { now: body, before: this.bodies.get(id)?.now ?? '' });
    await this.ask('update %s set body = $2 where id = $1', [id, body]);
  }

  private changed(body: string): string {
    const paragraphs = body.split('\n\n');
    const at = this.random(paragraphs.length);
    const kind = this.random(3);
    paragraphs.splice(at, kind === 0 ? 0 : 1, ...(kind === 2 ? [] : [this.paragraph()]));
    return paragraphs.join('\n\n');
  }

  private paragraph(): string {
    return Array.from({ length: 20 + this.random(150) }, () => this.oneOf(vocabulary)).join(' ');
  }

  private oneOf<T>(values: T[]): T {
    return values[this.random(values.length)] as T;
  }

  private async ask(statement: string, values: unknown[]): Promise<void> {
    await this.engine.sql.query(statement.replace('%s', this.table), values);
  }
}

/** Draws what becomes of a call of the model: 6 in 100 are refused, 3 fail, 4 come late, in 3 the caller dies. */
export function fates(seed: number): () => Fate {
  const random = randomNumbers(seed);
  return () => {
    const draw = random(100);
    if (draw < 6) return 'refuses';
    if (draw < 9) return 'fails';
    if (draw < 13) return 'stalls';
    return draw < 16 ? 'kills' : 'answers';
  };
}

/**
 * Lets users write while something follows the table: some ten writes in ten seconds, a part of them while the model answers.
 *
 * @param provider its plan is set.
 * @param round lets ten seconds go by.
 */
export async function writeAtRandom(
  writer: MemoWriter,
  provider: { plan: (texts: string[]) => Promise<Fate> | Fate },
  round: () => Promise<void>,
  { writes, seed }: { writes: number; seed: number },
): Promise<void> {
  const random = randomNumbers(seed + 1);
  const fate = fates(seed + 2);
  provider.plan = async () => {
    for (let left = random(3); left > 0 && writer.writes < writes; left--) await writer.write();
    return fate();
  };
  while (writer.writes < writes) {
    for (let left = 5 + random(10); left > 0 && writer.writes < writes; left--) await writer.write();
    await round();
  }
  provider.plan = () => 'answers';
}
