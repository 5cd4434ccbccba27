import type { NextSteps } from '../next-steps.ts';

/** Where to look next after the links' demo; `folder` has the files that the stand-ins serve, `link` is one of the links. */
export function linkSteps(folder: string, link: string): NextSteps {
  return {
    keep: ['npm run demo -- links --keep', ', sheet and all'],
    addresses: [['Sources', folder]],
    statements: [
      ['select * from link_queues;', 'what waits where'],
      [`select public.millrace_search(jsonb_build_object('text', canonical_url('${link}?utm_id=1')));`, 'its run'],
      ["select * from millrace.timeline(millrace.run_of('links', '1'));", 'what was tried for link 1'],
      ["update linkedin_links set status = 'queued' where status = 'extracted';", 'fetches the pages anew'],
      ['select * from millrace.shared_limit_state;', 'their limits, and what was spent'],
      ['select * from link_events order by id;', 'what happened to links'],
      ['select * from link_history where link_id = 1 order by id;', 'the words of link 1, by whom and why'],
    ],
    commands: [['npm run demo -- links --sheet FILE.csv https://…', 'does the same for links of your choice.']],
    note: 'Read on: docs/examples/links.md, docs/patterns/{gates,bypass}.md, docs/alerting.md.',
  };
}
