// The calls that the chain and the fan-out ask of each engine. Engines run in worker processes, not in the process that measures.

/** Connection URLs of one database, by what their role may do. */
export interface Urls {
  superuser: string;
  owner: string;
  /** Logs in as `authenticator`, which can become service_role and nothing else of use. */
  api: string;
}

export interface Task {
  work: 'chain' | 'fan-out';
  engine: string;
  variant: string;
  urls: Urls;
  /** How many entities go through the chain, or how many children the one parent has. */
  entities: number;
  /** How many jobs a worker takes at once. */
  batch: number;
}

export interface Worker {
  /**
   * Works until the signal is given. Calls `finished` with the number of entities whose last stage was committed. In
   * the fan-out that is all children, by whichever worker made the join ready.
   */
  run(signal: AbortSignal, finished: (entities: number) => void): Promise<void>;
  close(): Promise<void>;
}

export interface Engine {
  /** Removes what an earlier round left and queues `entities` entities at the first stage, or one parent. */
  seed(task: Task): Promise<void>;
  /** Opens one worker with one connection, or the pool that the engine's manual asks for. */
  open(task: Task): Promise<Worker>;
}

export const stageNames = ['one', 'two', 'three', 'four', 'five'] as const;

/** The result that every stage returns: 500 bytes of JSON. */
export const stageResult = { text: 'x'.repeat(489) };
