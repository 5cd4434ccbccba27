import type { TakenMessage } from '../engine/alert-contract.ts';
import { type AlertLinks, linksOf } from './link-alerts.ts';
import { playbookOf, sayAlert, sayNow } from './say-alert.ts';

type Facts = TakenMessage['events'][number];

/** An alert, or its end, as each channel tells it. */
export type AlertEvent = Facts & {
  /** The sentence. */
  message: string;
  /** How the alert stands now, where the sentence says otherwise. */
  now?: string | undefined;
  /** The address of the page that says what to do. */
  playbook?: string | null | undefined;
  /** The links to act on an alert; an alert that has ended has none. */
  links?: AlertLinks | undefined;
};

interface Places {
  project: string | null;
  page_url?: string | null | undefined;
  playbooks_url?: string | null | undefined;
}

/** A message as its channel renders it: each event of the engine's answer with its sentence. */
export type AlertMessage = Omit<TakenMessage, 'events'> & { events: AlertEvent[] };

/** Adds to each event of a message its sentence, its playbook and the links to act on it. */
export const alertMessage = (taken: TakenMessage): AlertMessage => ({
  ...taken,
  events: taken.events.map((facts) => alertEvent(facts, taken)),
});

function alertEvent(facts: Facts, places: Places): AlertEvent {
  const message = facts.message ?? sayAlert(facts);
  if (facts.event === 'test') return { ...facts, message };
  const now = facts.event === 'raised' ? sayNow(facts) : undefined;
  return {
    ...facts,
    message,
    ...(now && { now }),
    playbook: playbookOf(facts, places.playbooks_url ?? undefined),
    ...(facts.event === 'raised' && facts.alert !== undefined && { links: linksOf([facts.alert], facts, places) }),
  };
}
