// An alert on purpose: the gate before the scraper of jobs lets through a few, jobs pile up there, and a rule finds them.
import type pg from 'pg';

/** The rule that the demo adds. */
export const rule = 'demo_backlog';

/** What the demo does to the pipeline before the links come, as a person would. */
export const slowGate =
  `select millrace.throttle('links', 'route_job', '{"rate": {"count": 8, "per_seconds": 3600}}', ` +
  `now() + interval '1 hour', 'the boards are slow');`;
export const openGate = "select millrace.unthrottle('links', 'route_job');";
export const leaveOut = "select millrace.bypass('links', 'extract', 'the model is down');";
export const endBypass = "select millrace.end_bypass('links', 'extract');";
export const takeUp = "select millrace.take_up('links', 'extract');";

/** Adds a rule that finds more than `above` jobs before their gate, slows that gate, and leaves the model's stage out. */
export async function slowDown(client: pg.Client, above: number): Promise<void> {
  await client.query(
    `insert into millrace.alert_rules (name, kind, pipeline, stage, above, hold, recover)
     values ($1, 'backlog', 'links', 'route_job', $2, '0', '0')`,
    [rule, above],
  );
  await client.query(slowGate);
  await client.query(leaveOut);
}

/** Has the sweep judge the rules now, which it does once a minute. */
export async function judgeNow(client: pg.Client): Promise<void> {
  await client.query(`update millrace.settings set value = '' where name = 'rules_judged_at'`);
  await client.query('select millrace.sweep()');
}
