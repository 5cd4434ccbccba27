// What somebody should look at, and the way to its cause.

import { playbookOf, sayStanding } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import { Ago, Moment } from '../base/format.tsx';
import type { Route } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import type { Alert } from './answers.ts';
import { Causes } from './causes.tsx';
import { DeedButton } from './deeds.tsx';
import { Filter } from './filter.tsx';
import { PipelineLink } from './links.tsx';
import { asked, List } from './list.tsx';
import { State } from './states.tsx';

export function Alerts(route: Route) {
  const query = { ...asked(route.query, ['pipeline']), ...(route.query.get('show') !== 'all' && { open: true }) };
  return (
    <>
      <Filter
        route={route}
        fields={[
          { name: 'pipeline', label: 'Pipeline' },
          { name: 'show', label: 'Which', choices: ['all'], none: 'open ones' },
        ]}
      />
      <List<Alert> key={JSON.stringify(query)} name="alerts" rows="alerts" query={query}>
        {(alerts) => (
          <Table
            label="Alerts"
            rows={alerts}
            keyOf={({ id }) => id}
            none="No alert. All is as it should be."
            columns={[
              {
                name: 'State',
                cell: (a) => <State is={a.resolved_at ? 'done' : 'alert'}>{a.resolved_at ? 'over' : 'open'}</State>,
              },
              {
                name: 'What',
                cell: (a) => (
                  <div class="sample">
                    <Words text={sayStanding(a)} most={400} />
                  </div>
                ),
              },
              { name: 'Where', cell: (a) => <Where alert={a} /> },
              { name: 'Since', cell: (a) => <Ago at={a.raised_at} /> },
              { name: 'Over', cell: (a) => (a.resolved_at ? <Moment at={a.resolved_at} /> : '') },
              {
                name: 'Cause',
                cell: (a) => (
                  <>
                    <Causes of={a} /> <span class="hint">playbook: {playbookOf(a)}</span>
                  </>
                ),
              },
              { name: 'Deeds', cell: (a) => <Deeds alert={a} /> },
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

function Deeds({ alert: { id, resolved_at } }: { alert: Alert }) {
  return (
    <div class="actions">
      <DeedButton
        deed={{
          label: 'Silence',
          what: 'Nobody is told of alerts like this one for a while.',
          fields: [
            { name: 'minutes', label: 'For how many minutes', value: 60, between: [1, 576_000], isNeeded: true },
          ],
          request: ({ minutes }) => ({ verb: 'silence', alert: id, minutes: Number(minutes) }),
          needsReason: true,
          refused: resolved_at ? 'It is over.' : undefined,
        }}
      />
    </div>
  );
}
