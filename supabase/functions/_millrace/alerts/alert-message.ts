import '../zod-settings.ts';
import { z } from 'zod';
import { type Ways, waysFrom } from './alert-ways.ts';
import { playbookOf, sayAlert, sayNow } from './say-alert.ts';

const event = z.looseObject({
  event: z.enum(['raised', 'resolved', 'test']),
  /** The number of the alert; a test has none. */
  alert: z.number().optional(),
  /** The cause that several alerts share: an error code, or the limit at which a service refuses. */
  cause: z.string().nullish(),
  /** Of a test alone; of an alert it is made of the facts. */
  message: z.string().optional(),
  kind: z.string().nullish(),
  pipeline: z.string().nullish(),
  stage: z.string().nullish(),
  value: z.number().nullish(),
  above: z.number().nullish(),
  detail: z.string().nullish(),
  span_seconds: z.number().nullish(),
  since: z.string().nullish(),
  at: z.string().nullish(),
  resolved_at: z.string().nullish(),
  value_now: z.number().nullish(),
  detail_now: z.string().nullish(),
  under_since: z.string().nullish(),
  ends_at: z.string().nullish(),
  playbook: z.string().nullish(),
});

/** A message that is to be sent, as the engine hands it out. */
export const alertMessage = z
  .object({
    message: z.number(),
    try: z.number(),
    webhook_id: z.string(),
    created_at: z.string(),
    channel: z.string(),
    kind: z.enum(['webhook', 'slack', 'email']),
    /** The URL of a webhook, or e-mail addresses parted by commas; null where Vault has none. */
    address: z.string().nullable(),
    /** What a webhook is signed with, or the key of the e-mail API. */
    secret: z.string().nullable(),
    sender: z.string().nullable(),
    api_url: z.string(),
    project: z.string().nullable(),
    /** Where the operator's page is; null where nobody has said so. */
    page_url: z.string().nullish(),
    /** The folder of the playbooks. */
    playbooks_url: z.string().nullish(),
    events: z.array(event),
    /** How many events it does not list. */
    more: z.number(),
  })
  .transform((message) => ({ ...message, events: message.events.map((facts) => told(facts, message)) }));

type Facts = z.output<typeof event>;

/** An alert, or its end, as each channel tells it. */
export type AlertEvent = Facts & {
  /** The sentence. */
  message: string;
  /** How it stands now, where that is not what the sentence says. */
  now?: string | undefined;
  /** Where one reads what to do. */
  playbook?: string | null | undefined;
  /** Of an alert that is raised. */
  ways?: Ways | undefined;
};

interface Places {
  project: string | null;
  page_url?: string | null | undefined;
  playbooks_url?: string | null | undefined;
}

function told(facts: Facts, places: Places): AlertEvent {
  const message = facts.message ?? sayAlert(facts);
  if (facts.event === 'test') return { ...facts, message };
  const now = facts.event === 'raised' ? sayNow(facts) : undefined;
  return {
    ...facts,
    message,
    ...(now && { now }),
    playbook: playbookOf(facts, places.playbooks_url ?? undefined),
    ...(facts.event === 'raised' && facts.alert !== undefined && { ways: waysFrom([facts.alert], facts, places) }),
  };
}

export const takenMessages = z.object({ messages: z.array(alertMessage) });
/** How many of the deliveries counted. */
export const notedDeliveries = z.object({ noted: z.number() });

export type AlertMessage = z.output<typeof alertMessage>;

/** What came of a try to send a message. */
export interface Delivery {
  message: number;
  try: number;
  ok: boolean;
  /** The status of the receiver's answer, where there was one. */
  status?: number;
  error?: string;
  retry_after_ms?: number;
  /** Whether trying again cannot help. */
  permanent?: boolean;
}
