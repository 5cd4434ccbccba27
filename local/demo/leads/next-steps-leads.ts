import type { NextSteps } from '../next-steps.ts';

/** Returns where to look next after the leads' demo; `pageUrl` leads to the leads' page and brings a token along. */
export function leadSteps(sitesUrl: string, pageUrl: string): NextSteps {
  return {
    keep: ['npm run demo -- --keep', ', with a page of the leads that shows their stages move'],
    addresses: [
      ["Leads' page", pageUrl],
      ['Sample sites', sitesUrl],
    ],
    statements: [
      ['select * from lead_pipeline_status;', 'where each lead stands'],
      ['select * from millrace.stage_health;', 'what is ready, in work and failed'],
      ['select * from millrace.timeline(1);', 'attempts of a run, tokens, errors'],
      ['select * from lead_costs;', 'what each account’s leads have cost'],
      ['select * from millrace.stage_costs(1);', 'what each stage of a run has cost'],
      ['select * from millrace.doctor();', 'is it configured, is it healthy'],
      ["update leads set intel_status = 'queued' where scrape_status = 'completed';", 'once more from there'],
    ],
    commands: [['npm run demo -- --url https://…', 'does the same for web sites of your choice.']],
    note: 'Read on: docs/add-a-stage.md, docs/deploying.md, docs/settings.md.',
  };
}
