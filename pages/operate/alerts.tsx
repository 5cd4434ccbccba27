// Alerts, each with a link to its cause.

import { useEffect } from 'preact/hooks';
import type { Alert } from '../../operators/answers.ts';
import { engineFirst } from '../../operators/needs.ts';
import { describeAlert, playbookOf } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import { Ago, Moment } from '../base/format.tsx';
import { type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { type Action, ActionButton, openAction } from './actions.tsx';
import { Causes, Playbook } from './causes.tsx';
import { Filter } from './filter.tsx';
import { PipelineLink } from './links.tsx';
import { asked, List } from './list.tsx';
import { State } from './states.tsx';

export function Alerts(route: Route) {
  useEffect(() => openAskedSilence(route.query), [route.query]);
  const query = { ...asked(route.query, ['pipeline']), ...(route.query.get('show') !== 'all' && { open: true }) };
  return (
    <>
      <Filter
        route={route}
        fields={[
          { name: 'pipeline', label: 'Pipeline' },
          { name: 'show', label: 'State', choices: ['all'], none: 'open' },
        ]}
      />
      <List<Alert> key={JSON.stringify(query)} name="alerts" rows="alerts" query={query}>
        {(alerts, { playbooks_url }) => (
          <Table
            label="Alerts"
            rows={engineFirst(alerts)}
            keyOf={({ id }) => id}
            none="No alert. All is well."
            columns={[
              {
                name: 'State',
                cell: (a) => <State is={a.resolved_at ? 'done' : 'alert'}>{a.resolved_at ? 'over' : 'open'}</State>,
              },
              {
                name: 'Alert',
                cell: (a) => (
                  <div class="sample">
                    <Words text={describeAlert(a)} most={400} />
                  </div>
                ),
              },
              { name: 'Stage', cell: (a) => <Where alert={a} /> },
              { name: 'Raised', cell: (a) => <Ago at={a.raised_at} /> },
              { name: 'Ended', cell: (a) => (a.resolved_at ? <Moment at={a.resolved_at} /> : '') },
              {
                name: 'Cause',
                cell: (a) => (
                  <>
                    <Causes of={a} />
                    <Playbook at={playbookOf(a, playbooks_url as string | undefined)} />
                  </>
                ),
              },
              { name: 'Actions', cell: (a) => <Actions alert={a} /> },
            ]}
          />
        )}
      </List>
    </>
  );
}

/** The pipeline and the stage that it is about; an alert about the whole project has neither. */
function Where({ alert: { pipeline, stage } }: { alert: Alert }) {
  if (!pipeline) return <span class="hint">the project</span>;
  return (
    <>
      <PipelineLink of={pipeline} />
      {stage && (
        <>
          {' › '}
          <PipelineLink of={pipeline} stage={stage} />
        </>
      )}
    </>
  );
}

function Actions({ alert: { id, resolved_at } }: { alert: Alert }) {
  return (
    <div class="actions">
      <ActionButton action={{ ...silenceOf([id]), refused: resolved_at ? 'It is over.' : undefined }} />
    </div>
  );
}

/** The silence of alerts like these. */
function silenceOf(ids: number[], minutes = 60): Action {
  return {
    label: 'Silence',
    what: `Nobody is told of alerts like ${ids.length > 1 ? 'these' : 'this one'} for a while.`,
    fields: [{ name: 'minutes', label: 'For how many minutes', value: minutes, between: [1, 576_000], isNeeded: true }],
    request: (given) => ids.map((alert) => ({ verb: 'silence', alert, minutes: Number(given.minutes) })),
    needsReason: true,
  };
}

/** Opens the dialog that a message's link asks for: nothing is silenced before somebody says why. A reload does not ask again. */
function openAskedSilence(query: URLSearchParams): void {
  const ids =
    (query.get('silence') ?? '')
      .match(/\d{1,15}/g)
      ?.slice(0, 50)
      .map(Number) ?? [];
  if (ids.length === 0) return;
  const minutes = /^\d{1,6}$/.test(query.get('minutes') ?? '') ? Number(query.get('minutes')) : undefined;
  location.replace(to('alerts', '', { pipeline: query.get('pipeline'), show: query.get('show') }));
  openAction({ ...silenceOf(ids, minutes), title: `Silence alert${ids.length > 1 ? 's' : ''} ${ids.join(', ')}` });
}
