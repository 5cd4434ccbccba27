import type { NextSteps } from '../next-steps.ts';

/** Returns where to look next after the books' demo; `links` lead to the finished document. */
export function bookSteps(links: string[]): NextSteps {
  return {
    keep: ['npm run demo -- books --keep', ', with links to the document'],
    addresses: links.map((link) => ['Document', link]),
    statements: [
      ['select * from book_pipeline_status;', 'where each book stands, pages by stage'],
      ["select number, blend_result ->> 'text' from pages order by 1;", 'the pages’ text'],
      ['select * from millrace.timeline(1);', 'the book’s attempts: what began when'],
      ['select * from book_costs;', 'what each account’s books have cost'],
      ['select * from millrace.fan_outs;', 'children spawned, completed, failed'],
      ['select * from millrace.agent_log;', 'what the agent asked and was told'],
      ['select * from millrace.stage_health;', 'what is ready, in work and failed'],
      ["update books set headings_status = 'queued';", 'that stage and all after it once more'],
    ],
    commands: [['npm run demo -- books FILE', 'does the same for a PDF or a plain text of your own.']],
  };
}
