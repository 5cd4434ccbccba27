import type { NextSteps } from '../next-steps.ts';

/** Returns where to look next after the documents' demo. */
export function documentSteps(): NextSteps {
  return {
    keep: ['npm run demo -- documents --keep', ''],
    statements: [
      ['select * from pipeline_job;', 'one row a document: its latest run'],
      ['select * from pipeline_phase order by queued_at;', 'one row an attempt, retries linked'],
      ['select * from document_costs;', 'per organisation and platform'],
      ['select ordinal, heading, page, tokens, text from chunk;', 'the chunks, with their places'],
      ['select name, type from kg_entity order by name;', 'the knowledge graph’s entities'],
      ['select fact, chunk_id from kg_edge;', 'and its facts, each with its chunk'],
      ['select * from millrace.stage_health;', 'what is ready, in work, late and failed'],
      ["update document set chunking_status = 'queued' where extraction_status = 'completed';", 'once more from there'],
      ['update document_way set share = 0.5;', 'half of the documents go the old way'],
      ["update document set extraction_status = 'queued';", 'once more from the beginning'],
      ['select * from document_ways;', 'both ways side by side'],
      ['update document_way set share = 1;', 'all go the new way again; 0: the old'],
    ],
    commands: [
      ['npm run demo -- documents FILE …', 'does the same for files of your own, of any kind.'],
      ['USE_NEW_PIPELINE=false npm run demo -- documents', 'goes the old way, each document in one call.'],
    ],
  };
}
