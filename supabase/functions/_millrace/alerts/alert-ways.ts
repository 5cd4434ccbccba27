// From an alert to the operator's page and to a silence. Nothing happens by opening a link: mail scanners open all there are.
import type { AlertFacts } from '../engine/alert-contract.ts';

/** How long the silence lasts that messages offer. */
export const SILENCE_MINUTES = 60;

/** The links and commands of an alert, or of several with one cause. */
export interface Ways {
  /** Where its cause is seen on the operator's page; null where no page_url is set. */
  page: string | null;
  /** The page's dialog that silences them, filled in; null where no page_url is set. */
  silence: string | null;
  /** The command that does the same. */
  command: string;
}

/** Returns the ways from alerts by their numbers; the page is that of the first one's place. */
export function waysFrom(
  ids: number[],
  { pipeline, stage }: AlertFacts,
  { page_url, project }: { page_url?: string | null | undefined; project: string | null },
): Ways {
  const place = pipeline
    ? `/pipeline/${encodeURIComponent(pipeline)}${stage ? `?${new URLSearchParams({ stage })}` : ''}`
    : '/settings';
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
