// Back pressure that the first release took goes on holding after the upgrades that follow it.
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createBareDatabase } from '../support/database.ts';

const folder = path.join(import.meta.dirname, '..', '..', 'supabase', 'migrations');
const releases = fs.readdirSync(folder).filter((file) => /_millrace_\d+\.\d+\.\d+\.sql$/.test(file));
const [first = '', ...later] = releases.sort().map((file) => fs.readFileSync(path.join(folder, file), 'utf8'));

const definition = (pipeline: string, stages: object[]) =>
  JSON.stringify({ pipeline, entity: { table: 'public.items', key: 'id', projection: 'none' }, stages });
const heldBy = (stage: string, backlog: number) => ({ limits: { back_pressure: { stage, backlog } } });

test('thresholds of the first release hold after an upgrade, one of nothing as one of a single row', async () => {
  const database = await createBareDatabase();
  try {
    const owner = await database.connect();
    await owner.query(first);
    await owner.query('create table public.items (id bigint primary key)');
    const define = (pipeline: string, stages: object[]) =>
      owner.query('select millrace.define($1)', [definition(pipeline, stages)]);
    await define('other', [{ name: 'late' }]);
    await define('flow', [
      { name: 'a', ...heldBy('c', 0) },
      { name: 'b', needs: ['a'], ...heldBy('other.late', 7) },
      { name: 'c', needs: ['b'] },
    ]);
    for (const upgrade of later) await owner.query(upgrade);
    const { rows } = await owner.query(
      `select s.name as stage, p.name || '.' || l.name as later, b.backlog,
         array(select m.name from millrace.stages m where m.id = any (b.on_the_way)) as on_the_way
       from millrace.back_pressures b join millrace.stages s on s.id = b.stage_id
       join millrace.stages l on l.id = b.later_id join millrace.pipelines p on p.id = l.pipeline_id order by 1`,
    );
    expect(rows).toEqual([
      { stage: 'a', later: 'flow.c', backlog: 1, on_the_way: ['b'] },
      { stage: 'b', later: 'other.late', backlog: 7, on_the_way: [] },
    ]);
    expect((await owner.query('select * from millrace.check_invariants()')).rows).toEqual([]);
  } finally {
    await database.drop();
  }
});
