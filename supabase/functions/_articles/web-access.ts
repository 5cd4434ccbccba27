import { type Env, readSettings } from '../_millrace/mod.ts';
import type { WebFileOptions } from '../_services/web-file.ts';
import { feedSettings } from './feeds/feed-settings.ts';

/** Which hosts inside of a network articles and their images may come from: those that feeds may. */
export const webAccessSettings = feedSettings.pick({ FEED_ALLOW_HOSTS: true });

/** The allowed hosts for fetchWebFile(). Throws a MisconfiguredError. */
export function allowedHosts(env: Env): WebFileOptions['allowed'] {
  return { hosts: readSettings(webAccessSettings, env).FEED_ALLOW_HOSTS, setting: 'FEED_ALLOW_HOSTS' };
}
