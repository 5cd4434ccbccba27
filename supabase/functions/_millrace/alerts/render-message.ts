import type { AlertEvent, AlertMessage } from './alert-message.ts';

const SHOWN_EVENTS = 20;
const LONGEST_SUBJECT = 160;
const words = { raised: 'Raised', resolved: 'Resolved', test: 'Test' } as const;

/** What a webhook is sent: type, timestamp and data, as Standard Webhooks says. */
export function webhookBody({ events, more, project, channel, created_at }: AlertMessage): string {
  return JSON.stringify({
    type: 'millrace.alerts',
    timestamp: created_at,
    data: { project, channel, events, more },
  });
}

/**
 * What a Slack-compatible webhook is sent. Slack shows the blocks, in which a text is neither markup nor made a link. The text is
 * for notifications, and for receivers that know no blocks.
 */
export function slackBody(message: AlertMessage): string {
  const events = shownEvents(message);
  const lines = events.map((event) => `${words[event.event]}: ${plainForSlack(event.message)}`);
  const others = unlisted(message);
  return JSON.stringify({
    text: [...lines, ...others].join('\n'),
    mrkdwn: false,
    unfurl_links: false,
    blocks: [...events.map(eventParts), ...others.map((text) => [{ type: 'text', text }])].map((elements) => ({
      type: 'rich_text',
      elements: [{ type: 'rich_text_section', elements }],
    })),
  });
}

function eventParts({ event, message, playbook }: AlertEvent): object[] {
  const parts = [
    { type: 'text', text: words[event], style: { bold: true } },
    { type: 'text', text: `: ${message}` },
  ];
  if (!/^https?:\/\/[^\s<>|]+$/.test(playbook ?? '')) return parts;
  return [...parts, { type: 'text', text: ' ' }, { type: 'link', url: playbook, text: 'What to do' }];
}

/** What the e-mail API is sent: the shape of Resend's. */
export function emailBody(message: AlertMessage, to: string[]): string {
  return JSON.stringify({ from: message.sender, to, subject: subjectOf(message), text: textOf(message) });
}

function subjectOf(message: AlertMessage): string {
  const [first] = newestFirst(message);
  const others = message.events.length - 1 + message.more;
  const subject = `[Millrace] ${first ? `${words[first.event]}: ${first.message}` : 'Alerts'}`;
  const shown = oneLine(subject).slice(0, LONGEST_SUBJECT);
  return others > 0 ? `${shown} (and ${others} more)` : shown;
}

function textOf(message: AlertMessage): string {
  const parts = shownEvents(message).map((event) => {
    const lines = [`${words[event.event]}: ${event.message}.`];
    if (event.since) lines.push(`Since ${event.since}${event.resolved_at ? `, until ${event.resolved_at}` : ''}`);
    if (event.playbook && event.event !== 'resolved') lines.push(`What to do: ${event.playbook}`);
    return lines.join('\n');
  });
  return [...parts, ...unlisted(message), `Project: ${message.project ?? 'unknown'}`].join('\n\n');
}

function shownEvents(message: AlertMessage): AlertEvent[] {
  return newestFirst(message)
    .slice(0, SHOWN_EVENTS)
    .map((event) => ({ ...event, message: oneLine(event.message) }));
}

/** People read the newest first; a message that had to wait lists what happened in its order. */
function newestFirst({ events }: AlertMessage): AlertEvent[] {
  const time = ({ resolved_at, at }: AlertEvent) => Date.parse(resolved_at ?? at ?? '') || 0;
  return [...events].sort((one, other) => time(other) - time(one));
}

function unlisted({ events, more }: AlertMessage): string[] {
  const count = Math.max(0, events.length - SHOWN_EVENTS) + more;
  return count > 0 ? [`… and ${count} more: select * from millrace.alerts where resolved_at is null`] : [];
}

/**
 * Without what Slack reads as its own, and without links: where a receiver makes links of addresses, an invisible character
 * parts the scheme from the rest. Asterisks and their like are left to `mrkdwn`.
 */
function plainForSlack(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return escaped.replaceAll('://', ':\u2060//');
}

/** Without control characters, and those that turn the direction of writing. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
}
