import { z } from 'zod';
import type { Rpc } from '../engine/engine-client.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import { rowsToPutBack } from '../stage/rows-to-put-back.ts';
import type { Stage } from '../stage/stage.ts';
import type { Drain } from './drain.ts';
import { createDrain, type ProjectContext } from './drain-stage.ts';
import { EndlessBudget, OwnHost } from './own-host.ts';

/** Pauses between two questions for work, in milliseconds: the first after work, doubled up to the longest. */
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** The pause of a process that is woken: it asks so that its stages show it as alive, and takes up what a lost wake-up left. */
const WOKEN_PAUSE_MS = 10_000;
/** How long a stage is left alone that refused its worker: it has as many as it may have. */
const REFUSED_PAUSE_MS = 2_000;
const CALL_TIMEOUT_MS = 10_000;

/** The state of each stage, in the order in which they were named. */
const attended = z.object({ stages: z.array(z.enum(['ready', 'idle', 'function', 'unknown'])) });

export interface WorkOptions extends ProjectContext {
  stages: readonly Stage[];
  /** The release of the process, as doctor and status show it. */
  release: string | undefined;
  /** Where the process is woken; without it, it asks for work. */
  url: string | undefined;
  log: Log;
}

interface Post {
  stage: Stage;
  drain: Drain | null;
  /** Epoch milliseconds until which no worker is started for it. */
  quietUntil: number;
  /** The fault that the log has already told of it. */
  told: string;
}

/** Works at stages in one process: asks the engine where work is, and runs one worker at each stage that has some. */
export class StageWork {
  private readonly posts: Post[];
  private readonly host = new OwnHost();
  private readonly budget = new EndlessBudget();
  private readonly running = new Set<Promise<void>>();
  private stopping = false;
  private isWoken = false;
  private awake: () => void = () => {};
  private fault = '';

  constructor(private readonly o: WorkOptions) {
    this.posts = o.stages.map((stage) => ({ stage, drain: null, quietUntil: 0, told: '' }));
  }

  /** Works until it is stopped and its last row is saved. */
  async run(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    let rows = 0;
    while (!this.stopping) {
      await this.ask();
      const isBusy = this.host.rows > rows;
      rows = this.host.rows;
      pause = isBusy ? FIRST_PAUSE_MS : Math.min(pause * 2, LONGEST_PAUSE_MS);
      await this.sleep(this.o.url && !isBusy ? WOKEN_PAUSE_MS : pause);
    }
    while (this.running.size > 0) await Promise.all(this.running);
  }

  /** Asks at once where work is. */
  wake(): void {
    this.isWoken = true;
    this.awake();
  }

  /** Returns whether the process works at this stage. */
  has(pipeline: string, name: string): boolean {
    return this.posts.some(({ stage }) => stage.pipeline.name === pipeline && stage.name === name);
  }

  /** Takes nothing more and puts back what has not begun. `run` ends once the handlers that run have ended. */
  stop(): void {
    this.stopping = true;
    this.budget.close();
    for (const { drain } of this.posts) drain?.retire();
    for (const putBack of rowsToPutBack) putBack();
    this.wake();
  }

  /** Stops the handlers that still run, too, and puts their rows back. */
  end(reason: string): void {
    for (const { drain } of this.posts) drain?.unload(reason);
  }

  /** Calls the database for a worker, and keeps the time to save open while it answers. */
  private readonly call: Rpc = async (...given) => {
    const answer = await this.o.rpc(...given);
    if (answer.status > 0 && answer.status < 500) this.budget.answered();
    return answer;
  };

  /** Asks where work is, and starts a worker at each stage that has some and none of this process. */
  private async ask(): Promise<void> {
    const { rpc, release, url } = this.o;
    try {
      const args = {
        p_stages: this.posts.map(({ stage }) => ({ pipeline: stage.pipeline.name, stage: stage.name })),
        p_release: release ?? null,
        p_url: url ?? null,
      };
      const { data, error } = await rpc('millrace_attend', args, AbortSignal.timeout(CALL_TIMEOUT_MS));
      if (error) throw new Error([error.message, error.hint].filter(Boolean).join(' — '));
      const { stages } = attended.parse(data);
      this.fault = '';
      for (const [at, post] of this.posts.entries()) this.follow(post, stages[at] ?? 'unknown');
    } catch (error) {
      const fault = messageOf(error);
      if (fault !== this.fault) this.o.log.error('the database was not asked for work, trying again', { error: fault });
      this.fault = fault;
    }
  }

  private follow(post: Post, state: 'ready' | 'idle' | 'function' | 'unknown'): void {
    const { stage } = post;
    const named = `${stage.name} of pipeline ${stage.pipeline.name}`;
    if (state === 'unknown') {
      this.tell(post, `The database has no stage ${named}: push the migrations that \`npx millrace sync\` writes.`);
    } else if (state === 'function') {
      this.tell(
        post,
        `The database has an Edge Function run stage ${named}: say host: 'worker' in its definition, and push the ` +
          'migration that `npx millrace sync` writes.',
      );
    } else {
      post.told = '';
    }
    if (state !== 'ready' || post.drain || this.stopping || Date.now() < post.quietUntil) return;
    const work: Promise<void> = this.drain(post).finally(() => this.running.delete(work));
    this.running.add(work);
  }

  /** Runs one worker at a stage until it finds nothing more. */
  private async drain(post: Post): Promise<void> {
    const before = this.host.rows;
    const { drain, waker } = createDrain(
      post.stage,
      { ...this.o, rpc: this.call },
      {
        isolate: this.host,
        budget: this.budget,
        // Nobody sends a process of one's own away.
        probe: async () => true,
      },
    );
    post.drain = drain;
    const end = await drain.run();
    post.drain = null;
    if (end === 'refused' || end === 'failed') post.quietUntil = Date.now() + REFUSED_PAUSE_MS;
    else if (this.host.rows > before) this.wake();
    await waker.settled();
  }

  private tell(post: Post, fault: string): void {
    if (post.told !== fault) this.o.log.error(fault);
    post.told = fault;
  }

  private async sleep(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.awake = resolve;
      timer = setTimeout(resolve, this.isWoken ? 0 : ms);
    });
    clearTimeout(timer);
    this.isWoken = false;
  }
}
