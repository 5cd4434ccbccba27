// The engine's answers about alerts.
import '../zod-settings.ts';
import { z } from 'zod';

/** The facts that the engine keeps of an alert. `alerts/say-alert.ts` alone makes a sentence of them. */
export interface AlertFacts {
  /** The kind of its rule; null for a test of a channel. */
  kind?: string | null | undefined;
  pipeline?: string | null | undefined;
  /** The stage; null for the pipeline as a whole. */
  stage?: string | null | undefined;
  value?: number | null | undefined;
  /** The bound that the value is above. */
  above?: number | null | undefined;
  /** Details of the kind: the code of most failures, the late run, or a finding of doctor(). */
  detail?: string | null | undefined;
  /** How far back the rule looks. */
  span_seconds?: number | null | undefined;
  /** Since when the value has been above the bound, and when it was last looked at. */
  since?: string | null | undefined;
  at?: string | null | undefined;
  /** The rule's value now; null when it is no longer above the bound. */
  value_now?: number | null | undefined;
  detail_now?: string | null | undefined;
  /** Since when the rule is no longer above its bound, and when the alert ends if that stays so. */
  below_since?: string | null | undefined;
  ends_at?: string | null | undefined;
  /** When the alert ended. */
  resolved_at?: string | null | undefined;
}

const event = z.looseObject({
  event: z.enum(['raised', 'resolved', 'test']),
  /** The number of the alert; a test has none. */
  alert: z.number().optional(),
  /** The cause that several alerts share: an error code, or the limit at which a service refuses. */
  cause: z.string().nullish(),
  /** The sentence of a test; the sentence of an alert is made of its facts. */
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
  below_since: z.string().nullish(),
  ends_at: z.string().nullish(),
  playbook: z.string().nullish(),
});

/** A message that is to be sent, as the engine hands it out. */
export const takenMessage = z.object({
  message: z.number(),
  try: z.number(),
  webhook_id: z.string(),
  created_at: z.string(),
  channel: z.string(),
  kind: z.enum(['webhook', 'slack', 'email']),
  /** The URL of a webhook, or e-mail addresses parted by commas; null where Vault has none. */
  address: z.string().nullable(),
  /** The secret that signs a webhook, or the key of the e-mail API. */
  secret: z.string().nullable(),
  sender: z.string().nullable(),
  api_url: z.string(),
  project: z.string().nullable(),
  /** The address of the operator's page; null where it is not set. */
  page_url: z.string().nullish(),
  /** The folder of the playbooks. */
  playbooks_url: z.string().nullish(),
  events: z.array(event),
  /** How many events it does not list. */
  more: z.number(),
});

export const takenMessages = z.object({ messages: z.array(takenMessage) });
/** How many of the deliveries the engine noted. */
export const notedDeliveries = z.object({ noted: z.number() });

export type TakenMessage = z.output<typeof takenMessage>;

/** The outcome of one try to send a message. */
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
