// An alert on purpose: the stage that asks the model is paused, links pile up before it, and a rule finds them.
import type pg from 'pg';

/** The rule that the demo adds. */
export const rule = 'demo_backlog';

/** Adds a rule that finds more than `above` links before `extract`, and pauses the stage. */
export async function pauseExtract(client: pg.Client, above: number): Promise<void> {
  await client.query(
    `insert into millrace.alert_rules (name, kind, pipeline, stage, above, hold, recover)
     values ($1, 'backlog', 'links', 'extract', $2, '0', '0')`,
    [rule, above],
  );
  await client.query(`select millrace.pause('links', 'extract')`);
}

/** Has the sweep judge the rules now, which it does once a minute. */
export async function judgeNow(client: pg.Client): Promise<void> {
  await client.query(`update millrace.settings set value = '' where name = 'rules_judged_at'`);
  await client.query('select millrace.sweep()');
}
