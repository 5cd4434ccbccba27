// The meanings of the settings that hold for all pipelines.

/** A sentence for each setting that the page shows. */
export const meanings: Record<string, string> = {
  worker_seconds:
    'Seconds that a worker may run, the longest timeout of a stage. Change WORKER_SECONDS of the functions with it.',
  batch_bytes: 'Bytes of rows and results that a claim hands out at most; a row with more fails as row_too_large.',
  retention_days: 'Days after which millrace.prune() deletes finished runs.',
  history_gb: 'Gigabytes of history from which on millrace.doctor() warns, as it is or as it will be by its pruning.',
  minutes_hours: 'Hours after which the sweep deletes figures by the minute.',
  hours_days: 'Days after which the sweep deletes figures by the hour and costs by the day.',
  operators_need_aal2: 'true: an operator who acts with a user’s token has a second factor (aal2).',
  journal_days: 'Days after which the sweep deletes journal entries.',
  page_url:
    'Where the operator’s page is, which messages about alerts link to. npx millrace connect --page=URL and npx millrace open write it.',
  playbooks_url: 'The folder of the playbooks that messages about alerts link to; empty: those of this release.',
};
