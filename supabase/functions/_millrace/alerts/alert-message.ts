import '../zod-settings.ts';
import { z } from 'zod';
import { playbookOf, sayAlert } from './say-alert.ts';

const event = z
  .looseObject({
    event: z.enum(['raised', 'resolved', 'test']),
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
    playbook: z.string().nullish(),
  })
  .transform((facts) => ({
    ...facts,
    message: facts.message ?? sayAlert(facts),
    ...(facts.event !== 'test' && { playbook: playbookOf(facts) }),
  }));

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
    /** Where the playbooks are read, in place of docs/playbooks. */
    playbooks_url: z.string().nullish(),
    events: z.array(event),
    /** How many events it does not list. */
    more: z.number(),
  })
  .transform((message) => ({ ...message, events: message.events.map((told) => linked(told, message.playbooks_url)) }));

function linked(told: AlertEvent, url: string | null | undefined): AlertEvent {
  const page = told.playbook?.split('/').at(-1);
  return url && page ? { ...told, playbook: `${url}/${page}` } : told;
}

export const takenMessages = z.object({ messages: z.array(alertMessage) });
/** How many of the deliveries counted. */
export const notedDeliveries = z.object({ noted: z.number() });

export type AlertMessage = z.output<typeof alertMessage>;
export type AlertEvent = z.output<typeof event>;

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
