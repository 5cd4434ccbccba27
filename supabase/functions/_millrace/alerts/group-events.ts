// Groups events by cause, so that one broken service is one thing to read, at however many stages it fails.
import type { AlertEvent } from './alert-message.ts';

/** Events that a message shows as one; the first gives the place. */
export type EventGroup = [AlertEvent, ...AlertEvent[]];

/** Kinds that follow from failures at their stage. */
const consequences = new Set(['backlog', 'late']);

/** Groups raised events and ended events by cause. Keeps the order of each group's first event. */
export function groupEvents(events: AlertEvent[]): EventGroup[] {
  const groups = new Map<string, EventGroup>();
  for (const event of events) {
    const key = keyOf(event, events);
    const group = groups.get(key);
    if (group) group.push(event);
    else groups.set(key, [event]);
  }
  return [...groups.values()];
}

/** Returns the key of an event's group: its cause, or the cause of the only other event at its stage. */
function keyOf(event: AlertEvent, events: AlertEvent[]): string {
  const cause = event.cause ?? causeAt(event, events);
  return JSON.stringify(cause ? [event.event, cause] : [event.event, null, events.indexOf(event)]);
}

function causeAt({ event, kind, pipeline, stage }: AlertEvent, events: AlertEvent[]): string | null {
  if (!stage || !consequences.has(kind ?? '')) return null;
  const there = events.filter((o) => o.event === event && o.cause && o.pipeline === pipeline && o.stage === stage);
  const causes = new Set(there.map(({ cause }) => cause));
  return causes.size === 1 ? (there[0]?.cause ?? null) : null;
}
