/** The kind of a link's target. */
export type LinkKind = 'job' | 'post';

/** Hosts of which every page with a path is a job. */
const jobHosts =
  /(?:^|\.)(?:greenhouse\.io|lever\.co|ashbyhq\.com|workable\.com|personio\.(?:de|com)|recruitee\.com|teamtailor\.com|bamboohr\.com|myworkdayjobs\.com|smartrecruiters\.com|breezy\.hr|stepstone\.(?:de|com))$/;
const postHosts = /(?:^|\.)(?:x\.com|twitter\.com|threads\.net|bsky\.app|mastodon\.social)$/;
const linkedinJob = /^\/jobs\/view\//;
const linkedinPost = /^\/(?:feed\/update|posts|pulse)\//;
const indeedJob = /^\/(?:viewjob|rc\/clk|pagead\/clk)$/;
/** A path that names a job has something behind the word. */
const jobPath =
  /\/(?:jobs?|careers?|vacanc(?:y|ies)|positions?|openings?|stellen(?:angebote?|anzeigen?)?|jobangebote?)\/[^/]+/i;
const postPath = /\/(?:posts?|status|blog|articles?)\/[^/]+/i;

/** The kind of a link by its host and path; null where these do not say it. */
export function kindByAddress({ hostname, pathname }: URL): LinkKind | null {
  const host = hostname.toLowerCase();
  if (/(?:^|\.)linkedin\.com$/.test(host)) {
    if (linkedinJob.test(pathname)) return 'job';
    return linkedinPost.test(pathname) ? 'post' : null;
  }
  if (/(?:^|\.)indeed\.com$/.test(host)) return indeedJob.test(pathname) ? 'job' : null;
  if (jobHosts.test(host)) return pathname.length > 1 ? 'job' : null;
  if (postHosts.test(host)) return pathname.length > 1 ? 'post' : null;
  const [job, post] = [jobPath.test(pathname), postPath.test(pathname)];
  if (job === post) return null;
  return job ? 'job' : 'post';
}
