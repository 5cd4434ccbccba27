/** Parameters that tell a site where a reader came from, and nothing of the page. public.tracking_parameters() has the same. */
export const trackingParameters = (
  'fbclid gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid msclkid yclid ysclid _openstat twclid ttclid li_fat_id ' +
  'epik irclickid igshid igsh mc_cid mc_eid ml_subscriber_hash mkt_tok oly_anon_id oly_enc_id vero_id wickedid _branch_match_id ' +
  '_ga _gl _hsenc _hsmi __hssc __hstc __hsfp hsctatracking elqtrackid et_rid dm_i wt_mc wt_zmc ref_src ref_url guccounter ' +
  'guce_referrer guce_referrer_sig cmpid ncid sr_share s_cid xtor spm at_medium at_campaign at_custom1 at_custom2 gh_src'
).split(' ');
const tracking = new Set(trackingParameters);
const trackingPrefixes = /^(?:(?:utm|pk|mtm|piwik|matomo|hsa)_|lever-source)/;

/** As long as the scraper takes them. */
const longestUrl = 2048;

/**
 * An address as it is fetched, shown and compared: without what only tells where the reader came from, without fragment and
 * usual port, and with the host written in one way. Throws a TypeError for what is no URL.
 */
export function cleanUrl(text: string): string {
  const url = new URL(text.trim());
  url.hostname = url.hostname.replace(/\.+$/, '');
  url.hash = '';
  const pairs = url.search.slice(1).split('&');
  const kept = pairs.filter((pair) => pair !== '' && !isTracking(pair)).join('&');
  url.search = kept && `?${kept}`;
  return url.href;
}

/** The same where the text is an http or https address that can be fetched; null for anything else, passwords included. */
export function webAddress(text: string): string | null {
  if (!URL.canParse(text.trim())) return null;
  const { protocol, hostname, username, password } = new URL(text.trim());
  if (!/^https?:$/.test(protocol) || username || password || /^\.*$/.test(hostname)) return null;
  const cleaned = cleanUrl(text);
  return cleaned.length <= longestUrl ? cleaned : null;
}

function isTracking(pair: string): boolean {
  const name = pair.split('=', 1)[0]?.toLowerCase() ?? '';
  return tracking.has(name) || trackingPrefixes.test(name);
}
