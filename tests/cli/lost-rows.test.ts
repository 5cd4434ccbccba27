// Rows that `connect` and `sync --remote` write into a database that has the schema of another one without its rows.
import { expect, it } from 'vitest';
import { findProject } from '../../cli/project/find-project.ts';
import type { Finding } from '../../cli/project/read-health.ts';
import { lostPipelines, lostRows, writeLostRows } from '../../cli/sync/lost-rows.ts';
import { createTestDatabase } from '../support/database.ts';
import { projectFolder } from './run-command.ts';

it('brings settings, cron jobs and every definition back into a branch that was made without rows', async () => {
  const database = await createTestDatabase();
  try {
    const client = await database.connect();
    const findings = async () =>
      (await client.query<Finding>('select what, detail from millrace.doctor() where not ok')).rows;
    const defined = async () =>
      (
        await client.query(
          'select name, digest from millrace.pipelines union all select name, null from millrace.limits order by 1',
        )
      ).rows;
    const project = findProject(projectFolder);
    const before = await defined();
    expect(before.length).toBeGreaterThan(10);
    expect(lostRows(project, { findings: await findings() })).toBeNull();
    await client.query(`
      truncate millrace.pipelines, millrace.limits, millrace.settings, millrace.releases cascade;
      select cron.unschedule(jobname) from cron.job`);
    expect(lostPipelines({ findings: await findings() })).toHaveLength(
      before.filter(({ digest }) => digest !== null).length,
    );
    const lost = lostRows(project, { findings: await findings() });
    if (!lost) throw new Error('nothing is found to be lost');
    const target = `--yes --remote='${database.url}?sslmode=disable'`;
    expect(await writeLostRows(project, lost, target)).toMatch(
      /^Wrote the settings and cron jobs that were missing, and the definitions of .*leads/,
    );
    expect(await defined()).toEqual(before);
    const left = (await findings()).filter(({ what }) => /own rows|^pg_cron job|^pipeline /.test(what));
    expect(left).toEqual([]);
  } finally {
    await database.drop();
  }
});
