// The facts that one campaign knows while it runs: its tenant, what it was promised, and a count of all that it did.
import type { ChaosStack, Tenant } from './chaos-stack.ts';
import { Choices, type Plan, type Step } from './plan.ts';

/** Pipelines whose rows show each stage in columns of its own, with their tables and stages in order. */
const columnRoots = {
  leads: { table: 'leads', stages: ['scrape', 'intel', 'strategy', 'subject', 'messaging'] },
  documents: { table: 'document', stages: ['extraction', 'chunking', 'kg_ingest'] },
  books: {
    table: 'books',
    stages: ['split', 'metadata', 'toc', 'page_numbers', 'headings', 'structure', 'review', 'assemble'],
  },
  parcels: { table: 'parcels', stages: ['weigh', 'dispatch', 'carry', 'unpack', 'insure', 'sign'] },
  remarks: { table: 'remarks', stages: ['judge', 'reply'] },
} as const;
/** Pipelines whose rows show them in one column. */
const statusRoots = {
  links: {
    table: 'linkedin_links',
    stages: ['classify', 'route_job', 'scrape_job', 'route_post', 'scrape_post', 'stage_job', 'stage_post', 'extract'],
  },
  articles: {
    table: 'ingestion_queue',
    stages: ['fetch', 'score', 'summarize', 'tag', 'thumbnail', 'review', 'publish'],
  },
} as const;
/** The pipelines that users start. */
export const roots = { ...columnRoots, ...statusRoots } as const;
export type ColumnRoot = keyof typeof columnRoots;
export type RootName = keyof typeof roots;
export const columnRootNames = Object.keys(columnRoots) as ColumnRoot[];
export const rootNames = Object.keys(roots) as RootName[];

/** SQLSTATEs and the codes of the Data API by which a call may fail while the machinery does; MR… are the engine's own refusals. */
const understood = [
  // Connections, and a server that goes down or comes up; exhausted resources; a cancelled or refused wait.
  /^(08|57P|53)/,
  /^(57014|55P03)$/,
  /^MR/,
  /^PGRST00[0-3]$/,
  /^E(CONN|PIPE)/,
];
/** Errors that bear no code: Node's own, those of a fetch, and those of the gateway and of Storage while the database is away. */
const understoodWords =
  /terminated|fetch failed|aborted|timeout|ECONN|not reachable|socket hang up|Connection|upstream|starting up|shutting down|recovery mode|too many clients|slots are reserved|No space left|statement timeout|schema cache/i;

export class Campaign {
  readonly chaos: ChaosStack;
  readonly plan: Plan;
  readonly tenant: Tenant;
  readonly counts = new Map<string, number>();
  /** Rows whose writer was told that they are queued, as "table id". */
  readonly promised = new Set<string>();
  /** Rows that somebody tried to cancel, or whose stages somebody ended. */
  readonly cancelled = new Set<string>();
  /** An outcome that no fault explains. */
  readonly troubles: string[] = [];
  /** The stages that are booked and had been completed before, and how many attempts had been pruned or deleted. */
  before = { completed: 0, removed: 0 };
  /** The tasks that go on beside the steps and ends by itself. */
  readonly beside: Promise<void>[] = [];

  constructor(chaos: ChaosStack, plan: Plan, tenant: Tenant) {
    this.chaos = chaos;
    this.plan = plan;
    this.tenant = tenant;
  }

  count(what: string, by = 1): void {
    if (by > 0) this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }

  /** Does something that may be refused or fail for a fault's sake; what else goes wrong is kept as a trouble. */
  async attempt<T>(what: string, action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      const { code, message } = error as { code?: string; message?: string };
      // PostgREST gives the SQLSTATE of each refusal, and none where Postgres went away during the call.
      const codes = code === '' || understood.some((pattern) => pattern.test(code ?? ''));
      const known = codes || understoodWords.test(message ?? '');
      if (known) this.count(code?.startsWith('MR') ? 'refused by the engine' : 'failed for a fault');
      else this.troubles.push(`${what}: ${code ?? 'no code'} ${message ?? JSON.stringify(error)}`);
      return undefined;
    }
  }

  /** Goes on with something beside the steps, some of which may wait for it. */
  goBeside(what: string, action: Promise<unknown>): void {
    this.beside.push(this.attempt(what, () => action).then(() => {}));
  }

  /** The ids of a table's rows, oldest first. */
  async ids(table: string): Promise<string[]> {
    const rows = await this.chaos.asAdmin<{ id: string }>(`select id from public.${table} order by created_at, id`);
    return rows.map(({ id }) => id);
  }

  /** A pipeline and one of its rows, if there are any. */
  async row(choices: Choices): Promise<{ pipeline: RootName; table: string; id: string } | undefined> {
    const pipeline = choices.oneOf(rootNames) as RootName;
    const { table } = roots[pipeline];
    const id = choices.oneOf(await this.ids(table));
    return id === undefined ? undefined : { pipeline, table, id };
  }

  /** A run of a pipeline that users start, live or over, if there is any. */
  async run(step: Step, where: string): Promise<{ id: string; pipeline: string; entity: string } | undefined> {
    const runs = await this.chaos.asAdmin<{ id: string; pipeline: string; entity: string }>(
      `select r.id, p.name as pipeline, r.entity_id as entity from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
       where p.name = any ($1) and ${where} order by r.id`,
      [[...rootNames, 'document_monolith']],
    );
    return new Choices(step).oneOf(runs);
  }
}

/** Throws what a call of the Data API or of Storage answered instead of what was asked. */
export function orThrow<T>({ data, error, status }: { data: T; error: unknown; status?: number }): T {
  if (error && Object.keys(error).length === 0) throw new Error(`answered ${status} without a word`);
  if (error) throw error;
  return data;
}
