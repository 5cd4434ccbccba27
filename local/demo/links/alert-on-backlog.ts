// An alert on purpose: the gate before the scraper of jobs lets through a few, jobs pile up there, and a rule finds them.
import type pg from 'pg';

/** The rule that the demo adds. */
export const rule = 'demo_backlog';

/** How many jobs the slow gate lets through, and above how many waiting jobs the rule raises an alert. */
export const fewJobs = 26;
export const manyJobs = 10;

/** The demo's statements on the pipeline, as a person would write them. The first adds the rule. */
export const addRule =
  'insert into millrace.alert_rules (name, kind, pipeline, stage, above, hold, recover) ' +
  `values ('${rule}', 'backlog', 'links', 'route_job', ${manyJobs}, '0', '0');`;
export const slowGate =
  `select millrace.throttle('links', 'route_job', '{"rate": {"count": ${fewJobs}, "per_seconds": 3600}}', ` +
  `now() + interval '1 hour', 'the boards are slow');`;
export const openGate = "select millrace.unthrottle('links', 'route_job');";
export const sweep = 'select millrace.sweep();';
export const leaveOut = "select millrace.bypass('links', 'extract', 'the model is down');";
export const endBypass = "select millrace.end_bypass('links', 'extract');";
export const takeUp = "select millrace.take_up('links', 'extract');";

/** Adds a rule that finds jobs that pile up before their gate, slows that gate, and leaves the model's stage out. */
export async function slowDown(client: pg.Client): Promise<void> {
  for (const statement of [addRule, slowGate, leaveOut]) await client.query(statement);
}

/** Has the sweep judge the rules now, which it does once a minute. */
export async function judgeNow(client: pg.Client): Promise<void> {
  await client.query(`update millrace.settings set value = '' where name = 'rules_judged_at'`);
  await client.query('select millrace.sweep()');
}
