// As much of the peers' types as the benchmark uses, so that the project type-checks without installing them.

declare module 'pg-boss' {
  interface Database {
    executeSql(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  }
  export class PgBoss {
    constructor(options: { db: Database; supervise: boolean; schedule: boolean });
    on(event: 'error', listener: (error: Error) => void): void;
    start(): Promise<unknown>;
    stop(options: { graceful: boolean }): Promise<void>;
    createQueue(name: string): Promise<void>;
    insert(name: string, jobs: { data: object }[]): Promise<unknown>;
    fetch<T>(name: string, options: { batchSize: number }): Promise<{ id: string; data: T }[]>;
    complete(name: string, ids: string[], output: object | null): Promise<unknown>;
  }
}

declare module 'graphile-worker' {
  interface Client {
    query(query: { name: string; text: string; values: unknown[] }): Promise<{ rows: unknown[] }>;
  }
  interface Helpers {
    withPgClient<T>(use: (client: Client) => Promise<T>): Promise<T>;
  }
  export type TaskList = Record<string, (payload: unknown, helpers: Helpers) => Promise<void>>;
  interface Runner {
    stop(): Promise<void>;
  }
  export class Logger {
    constructor(factory: () => (level: string, message: string) => void);
  }
  export function runMigrations(options: { connectionString: string; logger: Logger }): Promise<void>;
  export function run(options: {
    connectionString: string;
    logger: Logger;
    noHandleSignals: boolean;
    taskList: TaskList;
    preset: { worker: Record<string, unknown> };
  }): Promise<Runner>;
}
