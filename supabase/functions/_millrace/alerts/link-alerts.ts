// Links from an alert to the operator's page and to a silence. Opening a link changes nothing, since mail scanners open all.
import type { AlertFacts } from '../engine/alert-contract.ts';

/** How long the silence lasts that messages offer. */
export const SILENCE_MINUTES = 60;

/** The links and commands of an alert, or of several with one cause. */
export interface AlertLinks {
  /** URL of the operator’s page for the alerts; null if page_url is not set. */
  page: string | null;
  /** URL of the dialog that silences the alerts, filled in; null if page_url is not set. */
  silence: string | null;
  /** The command that silences the alerts. */
  command: string;
}

/** Returns the links of alerts by their numbers. The page is that of one of them: the dead letters with their errors, or its stage. */
export function linksOf(
  ids: number[],
  { kind, pipeline, stage }: AlertFacts,
  { page_url, project }: { page_url?: string | null | undefined; project: string | null },
): AlertLinks {
  const screen = kind === 'dead' ? '/dead/' : '/pipeline/';
  const at = stage && kind !== 'dead' ? `?${new URLSearchParams({ stage })}` : '';
  const place = pipeline ? `${screen}${encodeURIComponent(pipeline)}${at}` : '/settings';
  const dialog = `/alerts?${new URLSearchParams({ silence: ids.join(' '), minutes: String(SILENCE_MINUTES) })}`;
  return {
    page: addressOf(page_url, place),
    silence: addressOf(page_url, dialog),
    command: `npx millrace silence ${ids.join(' ')} --minutes ${SILENCE_MINUTES} --reason TEXT${remoteOption(project)}`,
  };
}

function addressOf(page_url: string | null | undefined, hash: string): string | null {
  if (!page_url || !/^https?:/.test(page_url) || !URL.canParse(page_url)) return null;
  const url = new URL(page_url);
  url.hash = hash;
  return url.href;
}

/** Returns the option that names a hosted project; for any other the command reads the address from its environment. */
function remoteOption(project: string | null): string {
  const reference = /^https:\/\/([a-z0-9]{20})\.supabase\.co$/.exec(project ?? '')?.[1];
  return reference ? ` --remote=${reference}` : '';
}
