import { excerpt } from '../errors.ts';
import type { AlertEvent, AlertMessage } from './alert-message.ts';
import { type EventGroup, groupEvents } from './group-events.ts';
import { type AlertLinks, linksOf } from './link-alerts.ts';

const SHOWN_EVENTS = 20;
const LONGEST_SUBJECT = 160;
const words = { raised: 'Raised', resolved: 'Resolved', test: 'Test' } as const;

/** The body of a webhook: type, timestamp and data, as Standard Webhooks says. Events of one cause have the same `cause`. */
export function webhookBody({ events, more, project, page_url, channel, created_at }: AlertMessage): string {
  return JSON.stringify({
    type: 'millrace.alerts',
    timestamp: created_at,
    data: { project, page_url: page_url || null, channel, events, more },
  });
}

/**
 * Returns the JSON body for a Slack-compatible webhook. Slack shows the blocks, where it reads a text neither as markup
 * nor as a link. The field `text` serves notifications, and receivers that know no blocks.
 */
export function slackBody(message: AlertMessage): string {
  const groups = shownGroups(message);
  const lines = groups.flatMap((group) => linesOf(group).map(plainForSlack));
  const others = [...unlisted(message), projectLine(message)];
  return JSON.stringify({
    text: [...lines, ...others.map(plainForSlack)].join('\n'),
    mrkdwn: false,
    unfurl_links: false,
    blocks: [
      ...groups.map((group) => groupParts(group, message)),
      ...others.map((text) => [{ type: 'text', text }]),
    ].map((elements) => ({
      type: 'rich_text',
      elements: [{ type: 'rich_text_section', elements }],
    })),
  });
}

function groupParts(group: EventGroup, message: AlertMessage): object[] {
  const [title, ...lines] = linesOf(group);
  const word = words[group[0].event];
  const links = linksIn(group, message);
  const buttons: [string, string | null | undefined][] = [
    ['What to do', group[0].playbook],
    ['Look', links?.page],
    ['Silence for an hour', links?.silence],
  ];
  const shown = buttons.filter(([, url]) => /^https?:\/\/[^\s<>|]+$/.test(url ?? ''));
  return [
    { type: 'text', text: word, style: { bold: true } },
    { type: 'text', text: [title?.slice(word.length), ...lines].join('\n') },
    ...shown.flatMap(([text, url], place) => [
      { type: 'text', text: place > 0 ? ' · ' : ' ' },
      { type: 'link', url, text },
    ]),
    ...(links && !links.silence ? [{ type: 'text', text: `\n${links.command}` }] : []),
  ];
}

/** Returns the JSON body for the e-mail API, in the shape of Resend's. */
export function emailBody(message: AlertMessage, to: string[]): string {
  return JSON.stringify({ from: message.sender, to, subject: subjectOf(message), text: textOf(message) });
}

function subjectOf(message: AlertMessage): string {
  const [first] = shownGroups(message);
  const others = message.events.length - (first?.length ?? 1) + message.more;
  const project = nameOf(message.project);
  const subject = `[Millrace${project && ` ${project}`}] ${first ? linesOf(first).slice(0, 2).join(' ') : 'Alerts'}`;
  const shown = excerpt(oneLine(subject), LONGEST_SUBJECT);
  return others > 0 ? `${shown} (and ${others} more)` : shown;
}

/** Returns the project's reference, or the host of one that is not at supabase.co. */
function nameOf(project: string | null): string {
  const host = project && URL.canParse(project) ? new URL(project).host : '';
  return host.replace(/\.supabase\.co$/, '');
}

function textOf(message: AlertMessage): string {
  const parts = shownGroups(message).map((group) => {
    const [{ since, resolved_at, playbook, event }] = group;
    const lines = linesOf(group).map((line) => (line.endsWith(':') ? line : `${line}.`));
    if (since) lines.push(`Since ${since}${resolved_at ? `, until ${resolved_at}` : ''}`);
    if (playbook && event !== 'resolved') lines.push(`What to do: ${playbook}`);
    const links = linksIn(group, message);
    if (links?.page) lines.push(`Look: ${links.page}`);
    if (links) lines.push(`Silence for an hour: ${[links.silence, links.command].filter(Boolean).join('\n  or ')}`);
    return lines.join('\n');
  });
  return [...parts, ...unlisted(message), projectLine(message)].join('\n\n');
}

const projectLine = ({ project }: AlertMessage) => `Project: ${project ?? 'unknown'}`;

/** Returns the text of a group: a sentence, or its cause and a sentence for each of its events. */
function linesOf(group: EventGroup): string[] {
  const [{ event, message, now, cause }] = group;
  const sentence = (told: AlertEvent) => `${told.message}${told.now ? `, ${told.now}` : ''}`;
  if (group.length === 1) return [`${words[event]}: ${message}${now ? `, ${now}` : ''}`];
  const of = group.find((told) => told.cause)?.cause ?? cause;
  return [
    `${words[event]}: ${group.length} alerts of one cause, ${oneLine(of ?? '')}:`,
    ...group.map((told) => `• ${sentence(told)}`),
  ];
}

function linksIn(group: EventGroup, places: AlertMessage): AlertLinks | undefined {
  const ids = group.flatMap(({ event, alert }) => (event === 'raised' && alert !== undefined ? [alert] : []));
  // The page of dead letters has the error whole, with what helps and the retry of all.
  const of = group.find(({ kind }) => kind === 'dead') ?? group[0];
  return ids.length > 0 ? linksOf(ids, of, places) : undefined;
}

function shownGroups(message: AlertMessage): EventGroup[] {
  const shown = urgentFirst(message)
    .slice(0, SHOWN_EVENTS)
    .map((event) => ({ ...event, message: oneLine(event.message), ...(event.now && { now: oneLine(event.now) }) }));
  return groupEvents(shown);
}

/** Puts alerts of the engine first, since other alerts may be out of date while it fails; then the newest event. */
function urgentFirst({ events }: AlertMessage): AlertEvent[] {
  const time = ({ resolved_at, at }: AlertEvent) => Date.parse(resolved_at ?? at ?? '') || 0;
  const isEngine = ({ kind, event }: AlertEvent) => Number(kind === 'engine' && event === 'raised');
  return [...events].sort((one, other) => isEngine(other) - isEngine(one) || time(other) - time(one));
}

function unlisted({ events, more }: AlertMessage): string[] {
  const count = Math.max(0, events.length - SHOWN_EVENTS) + more;
  return count > 0 ? [`… and ${count} more: select * from millrace.alerts where resolved_at is null`] : [];
}

/**
 * Escapes what Slack reads as markup. An invisible character after the scheme keeps receivers from making links of
 * addresses. `mrkdwn` deals with asterisks and their like.
 */
function plainForSlack(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return escaped.replaceAll('://', ':\u2060//');
}

/** Replaces control characters, and those that turn the direction of writing, by blanks. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
}
