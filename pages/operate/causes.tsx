// From an alert to where its cause is seen, and to where something is done about it.

import type { Alert } from '../../operators/answers.ts';
import { to } from '../base/route.ts';

type Way = [name: string, address: string];

function linksOf({ kind, pipeline, stage }: Alert): Way[] {
  if (!pipeline) return [['what is amiss', to('settings')]];
  const dead: Way = ['dead letters', to('dead', '', { pipeline })];
  switch (kind) {
    case 'dead':
      return [dead];
    case 'error_share':
      return [['errors by code', to('pipeline', pipeline, { stage })], dead];
    case 'refused':
      return [['limits', to('limits')]];
    default:
      return [['runs there', to('runs', '', { pipeline, stage, status: 'running' })]];
  }
}

/** The ways to the cause of an alert. */
export function Causes({ of: alert }: { of: Alert }) {
  return <AlertLinks ways={linksOf(alert)} />;
}

/** The ways to its cause, and to the stage or the pipeline with its actions. */
export function CausesAndPlace({ of: alert }: { of: Alert }) {
  const { pipeline, stage } = alert;
  const place: Way[] = pipeline ? [[stage ? 'its stage' : 'its pipeline', to('pipeline', pipeline, { stage })]] : [];
  return <AlertLinks ways={[...linksOf(alert), ...place]} />;
}

function AlertLinks({ ways }: { ways: Way[] }) {
  return (
    <>
      {ways.map(([name, address]) => (
        <span key={name}>
          <a href={address}>{name}</a>{' '}
        </span>
      ))}
    </>
  );
}
