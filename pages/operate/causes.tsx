// From an alert to where its cause is seen, and to where something is done about it.

import type { Alert } from '../../operators/answers.ts';
import { to } from '../base/route.ts';

type Way = [name: string, address: string];

/** `deadLetters`: how many dead letters its pipeline has, where that is known. */
function linksOf({ kind, pipeline, stage }: Alert, deadLetters?: number): Way[] {
  if (!pipeline) return [['findings', to('settings')]];
  const dead: Way[] = deadLetters === 0 ? [] : [['dead letters', to('dead', '', { pipeline })]];
  switch (kind) {
    case 'dead':
      return dead;
    case 'error_share':
      return [['errors by code', to('pipeline', pipeline, { stage })], ...dead];
    case 'refused':
      return [['limits', to('limits')]];
    default:
      return [['runs', to('runs', '', { pipeline, stage, status: 'running' })]];
  }
}

/** The ways to the cause of an alert. */
export function Causes({ of: alert }: { of: Alert }) {
  return <AlertLinks ways={linksOf(alert)} />;
}

/** The ways to its cause, and to the stage or the pipeline with its actions where none of them leads there. */
export function CausesAndPlace({ of: alert, dead }: { of: Alert; dead: number }) {
  const { pipeline, stage } = alert;
  const causes = linksOf(alert, dead);
  const place: Way[] = pipeline ? [[stage ? 'stage' : 'pipeline', to('pipeline', pipeline, { stage })]] : [];
  const others = place.filter(([, there]) => !causes.some(([, address]) => address === there));
  return <AlertLinks ways={[...causes, ...others]} />;
}

function AlertLinks({ ways }: { ways: Way[] }) {
  return (
    <>
      {ways.map(([name, address]) => (
        <span key={name}>
          <a href={address}>{name}</a>
          {' · '}
        </span>
      ))}
    </>
  );
}

/** The playbook of an alert: a link where it is an address, else its text. */
export function Playbook({ at }: { at: string }) {
  if (!/^https?:\/\//.test(at)) return <span class="hint">playbook: {at}</span>;
  return (
    <a href={at} rel="noreferrer" title={at}>
      playbook
    </a>
  );
}
