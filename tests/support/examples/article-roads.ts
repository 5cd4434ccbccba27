// Roads that articles take, by real moves: inserts, workers' claims and reports, adoption, and what people write.
import { randomUUID } from 'node:crypto';
import { makeAdoption } from '../engine/status.ts';
import type { Engine, Row } from '../engine.ts';
import { jobEnd } from '../sessions.ts';
import { type Claimed, completed, failed, resume, Worker, waiting } from '../worker.ts';
import type { Articles } from './articles.ts';

/** A stage that is done as it should be, a code that a person writes, or what else becomes of a stage. */
export type Step = string | number | { stage: string; becomes: 'started' | 'waiting' | Row };

/** The columns that an article brings along, beside an address of its own, and the steps that it takes. */
export interface Road {
  brings?: Row;
  interim?: Step[];
}

const shown = { title: 'Lock gates', summary: 'Gates were replaced.', tags: ['locks'], thumbnail_url: '/gates.jpg' };

/** The facts of an article that a stage reads. */
export function resultOf(stage: string, id: string): Row {
  const results: Record<string, Row> = {
    fetch: { title: shown.title, content: `${id} `.repeat(9), canonical_url: `https://looms.test/${id}` },
    score: { score: 0.5, topic_id: randomUUID(), relevant: true },
    summarize: { summary: shown.summary },
    tag: { tags: shown.tags },
    thumbnail: { thumbnail_url: shown.thumbnail_url },
    publish: { ...shown, slug: id, url: null, notify: false },
  };
  return results[stage === 'republish' ? 'publish' : stage] ?? {};
}

/** Takes articles along roads. A stage takes the one that has waited longest: those that are to wait come last. */
export class Roads {
  readonly #articles: Articles;
  readonly #workers = new Map<string, Worker>();
  /** The attempts that workers have taken and not finished, by stage. */
  readonly #taken = new Map<string, Claimed[]>();
  /** The jobs at the service for pages. */
  #handedOver: Claimed[] = [];

  constructor(articles: Articles) {
    this.#articles = articles;
  }

  /** Inserts an article and takes it along its road; resolves to its id. */
  async take({ brings = {}, interim = [] }: Road): Promise<string> {
    const { id } = await this.#articles.insert({ url: `https://looms.test/${randomUUID()}`, ...brings });
    for (const step of interim) await this.#step(id, step);
    return id;
  }

  /** Finishes what was taken, and does the work of these stages until there is none. */
  async workOff(stages: string[]): Promise<void> {
    const jobs = this.#handedOver.map((item) =>
      jobEnd(item, item.entity_id, { result: resultOf('fetch', item.entity_id) }),
    );
    this.#handedOver = [];
    if (jobs.length > 0) await resume(this.#articles.engine, jobs);
    for (let done = 1; done > 0; ) {
      done = 0;
      for (const stage of stages) {
        const worker = await this.#worker(stage);
        const batch = [...(this.#taken.get(stage) ?? []), ...(await worker.take(100))];
        this.#taken.delete(stage);
        const reports = batch.map((item) => completed(item, resultOf(stage, item.entity_id)));
        if (reports.length > 0) await worker.report(...reports);
        done += reports.length;
      }
    }
  }

  async #worker(stage: string): Promise<Worker> {
    const worker = this.#workers.get(stage) ?? (await Worker.of(this.#articles.engine, stage, 'articles'));
    this.#workers.set(stage, worker);
    return worker;
  }

  async #step(id: string, step: Step): Promise<void> {
    if (typeof step === 'number') return this.#articles.move(id, step);
    const { stage, becomes } = typeof step === 'string' ? { stage: step, becomes: {} } : step;
    const worker = await this.#worker(stage);
    const item = await worker.takeOne();
    if (item.entity_id !== id) throw new Error(`${stage} took ${item.entity_id}, and not ${id}`);
    if (becomes === 'started') {
      this.#taken.set(stage, [...(this.#taken.get(stage) ?? []), item]);
      return;
    }
    if (becomes === 'waiting') this.#handedOver.push(item);
    const verdicts = await worker.report(report(item, stage, becomes));
    if (verdicts[0] !== 'accepted') throw new Error(`${stage} was answered ${verdicts} for ${id}`);
  }
}

function report(item: Claimed, stage: string, becomes: 'waiting' | Row): Row {
  if (becomes === 'waiting') return waiting(item, item.entity_id);
  if ('code' in becomes) return failed(item, { permanent: true, ...becomes });
  return completed(item, { ...resultOf(stage, item.entity_id), ...becomes });
}

const discovery: Step[] = ['fetch', 'score'];
const enriched: Step[] = [...discovery, 'summarize', 'tag', 'thumbnail'];
const approved: Step[] = [...enriched, 310, 320, 330];
const published: Step[] = [...approved, 'publish'];
const updated: Step[] = [...published, 320, 410, 'republish'];
const manual = { entry_type: 'manual' };
const text = { ...manual, title: 'Looms', content: 'A text that somebody wrote.' };
const summed = { ...text, summary: 'What it says.' };
const whole = { ...summed, tags: ['looms'], thumbnail_url: '/loom.jpg' };
const copied = 'https://looms.test/copied';
const fails = (stage: string, code: string) => ({ stage, becomes: { code } });
const copies = { stage: 'fetch', becomes: { canonical_url: copied, content: 'Short.' } };

/** The road to every state in which an article can rest; those that are to be taken by no other's worker come last. */
export const roads: [state: string, road: Road][] = [
  ['410', { interim: updated }],
  ['320 of 410', { interim: [...updated, 320] }],
  ['500 of republish', { interim: [...published, 320, 410, fails('republish', 'server_error')] }],
  ['410 on its way', { interim: [...published, 320, 410] }],
  ['320 of 400', { interim: [...published, 320] }],
  ['400', { interim: published }],
  ['500 of publish', { interim: [...approved, fails('publish', 'server_error')] }],
  ['330', { brings: whole, interim: [310, 330] }],
  ['540', { brings: whole, interim: [310, 540] }],
  ['320', { brings: whole, interim: [310, 320] }],
  ['310', { brings: whole, interim: [310] }],
  ['300', { brings: whole }],
  ['500 of tag', { brings: summed, interim: [fails('tag', 'server_error')] }],
  ['500 of fetch', { interim: [fails('fetch', 'no_content')] }],
  ['510', { interim: [fails('fetch', 'not_found')] }],
  ['530', { brings: { url: copied }, interim: [copies, { stage: 'score', becomes: { relevant: false } }] }],
  ['520', { interim: [copies] }],
  ['520 on entry', { brings: { url: copied } }],
  ['231', { brings: text, interim: ['summarize', 'tag', { stage: 'thumbnail', becomes: 'started' }] }],
  ['230', { brings: text, interim: ['summarize', 'tag'] }],
  ['221', { brings: summed, interim: [{ stage: 'tag', becomes: 'started' }] }],
  ['220', { brings: summed }],
  ['211', { brings: text, interim: [{ stage: 'summarize', becomes: 'started' }] }],
  ['210', { brings: manual, interim: ['fetch'] }],
  ['121', { interim: ['fetch', { stage: 'score', becomes: 'started' }] }],
  ['120', { interim: ['fetch'] }],
  ['111', { interim: [{ stage: 'fetch', becomes: 'started' }] }],
  ['111 at the service', { interim: [{ stage: 'fetch', becomes: 'waiting' }] }],
  ['110', { brings: manual }],
  ['200', { brings: { status: '200' } }],
  ['200 with all', { brings: { ...whole, status: '200' } }],
  ['100', { brings: { status: '100' } }],
  ['100 with all', { brings: { ...whole, status: '100', entry_type: 'import' } }],
];

/** Brings an article to every state; resolves to their ids by state. */
export async function articlesAtEveryState(articles: Articles, traveller: Roads): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  for (const [state, road] of roads) ids.set(state, await traveller.take(road));
  await adoptArticles(articles.engine);
  return ids;
}

/** Gives each article with an old status and no code the code of that name. */
async function adoptArticles(engine: Engine): Promise<void> {
  await makeAdoption(engine);
  await engine.sql.query(`
    create function public.code_of_status(q public.ingestion_queue) returns smallint language sql
    as 'select q.status::smallint'`);
  const adopt = `select * from millrace.adopt('articles', 'status', 'public.code_of_status', p_dry_run => false)`;
  while ((await engine.rows(adopt)).length > 0);
}
