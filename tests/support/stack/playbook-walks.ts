// How the playbooks of docs/playbooks are followed on the operator's page.
import type { Locator } from 'playwright-core';
import type { Walk } from './walk.ts';

export interface PlaybookWalk {
  playbook: string;
  /** The alert that the walk begins at; the overview alone where there is none. */
  alert?: RegExp;
  /** The fault, by SQL. */
  before?: string;
  way: (walk: Walk, alert: Locator) => Promise<void>;
  /** The entry that stands in the journal at the end; nothing where the page only shows. */
  verb?: string;
}

/** Two parcels fail for good, once more where they did before. */
const failTwo = `select millrace.fail_stage(run_id, 'send', 'the address is gone', true) from (
  select a.run_id from millrace.attempts a join millrace.stages s on s.id = a.stage_id
  where s.name = 'send' and a.state = 'queued' and not a.superseded order by a.run_id limit 2) as gone`;

const cause = (alert: Locator, name: string) => alert.getByRole('link', { name, exact: true });

export const playbookWalks: PlaybookWalk[] = [
  {
    playbook: 'permanent-failures',
    before: failTwo,
    alert: /runs of parcels failed/,
    async way(walk, alert) {
      await walk.press('dead letters', cause(alert, 'dead letters'));
      await walk.retryGroup(/failed_by_hand/, 2);
      await walk.screen('Journal', 'j');
      await walk.page.getByRole('cell', { name: 'as the playbook says' }).first().waitFor();
    },
    verb: 'begin',
  },
  {
    playbook: 'throttle',
    alert: /runs are ready at pack/,
    async way(walk, alert) {
      await walk.press('stage', cause(alert, 'stage'));
      await walk.atStage('pack');
      await walk.does('Throttle');
      await walk.page.getByRole('region', { name: 'Graph of the stages' }).getByText('throttled').waitFor();
      await walk.screen('Alerts', 'a');
      await walk.does('Silence', walk.page.getByRole('row', { name: /runs are ready at pack/ }));
      await walk.back();
      await walk.atStage('pack');
      await walk.does('Unthrottle');
      await walk.page.getByText('throttled', { exact: true }).waitFor({ state: 'hidden' });
    },
    verb: 'unthrottle',
  },
  {
    playbook: 'stuck',
    before: `select millrace.pause('parcels', 'pack')`,
    alert: /late at pack/,
    async way(walk, alert) {
      await walk.press('runs', cause(alert, 'runs'));
      await walk.page.getByRole('region', { name: 'Runs' }).getByRole('link').first().waitFor();
      await walk.back();
      await walk.press('stage', cause(alert, 'stage'));
      await walk.atStage('pack');
      await walk.does('Unpause');
      await walk.page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    },
    verb: 'unpause',
  },
  {
    playbook: 'reprocess',
    before: `update millrace.attempts set queue_at = millrace.now() + interval '1 hour'
      where state = 'queued' and retry_count > 0`,
    alert: /of what ended at pack/,
    async way(walk, alert) {
      await walk.press('errors by code', cause(alert, 'errors by code'));
      await walk.atStage('pack');
      await walk.press('runs', walk.page.getByRole('main').getByRole('heading').getByRole('link', { name: 'runs' }));
      const runs = walk.page.getByRole('region', { name: 'Runs', exact: true });
      await walk.go(
        runs
          .getByRole('row', { name: /no_box/ })
          .getByRole('link')
          .first(),
      );
      await walk.does('Hurry');
      await walk.page.getByRole('button', { name: 'Hurry: No retry of it waits for its time.' }).waitFor();
      await walk.see('Retry', walk.page.getByRole('button', { name: /^Retry/ }));
      await walk.see('Reset', walk.page.getByRole('button', { name: 'Reset' }));
    },
    verb: 'hurry',
  },
  {
    playbook: 'budget',
    alert: /parcels spent .* US dollars/,
    async way(walk, alert) {
      await walk.press('pipeline', cause(alert, 'pipeline'));
      await walk.see('Spent', walk.page.getByRole('columnheader', { name: 'Spent' }));
      await walk.stage('pack');
      await walk.does('Pause');
      await walk.page.getByRole('button', { name: 'Unpause', exact: true }).waitFor();
      await walk.does('Unpause');
      await walk.page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
      await walk.screen('Limits', 'l');
    },
    verb: 'unpause',
  },
  {
    playbook: 'engine',
    alert: /the engine is not well/,
    async way(walk, alert) {
      await walk.page.locator('.engine').getByText('not well').waitFor();
      await walk.press('findings', cause(alert, 'findings'));
      await walk.see('Settings', walk.page.getByRole('heading', { name: 'Findings' }));
      await walk.screen('Alerts', 'a');
      await walk.does('Silence', walk.page.getByRole('row', { name: /the engine is not well/ }));
    },
    verb: 'silence',
  },
  {
    playbook: 'retention',
    async way(walk) {
      await walk.screen('Settings', 'e');
      await walk.see('Findings', walk.page.getByRole('heading', { name: 'Findings' }));
      await walk.see('Settings of all pipelines', walk.page.getByRole('cell', { name: 'retention_days' }));
      await walk.see('Definitions', walk.page.getByRole('region', { name: 'Definitions' }));
    },
  },
  {
    playbook: 'deploy-one-function',
    before: failTwo,
    async way(walk) {
      await walk.search('parcels');
      await walk.stage('send');
      await walk.does('Pause');
      await walk.page.getByRole('button', { name: 'Unpause', exact: true }).waitFor();
      await walk.does('Unpause');
      await walk.screen('Dead letters', 'd');
      await walk.retryGroup(/failed_by_hand/, 2);
    },
    verb: 'begin',
  },
];
