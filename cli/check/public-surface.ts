// The functions that people call, by SQL or through the Data API. These alone carry a `comment on`, which Studio shows.

/** Every `public.millrace_*` belongs to the surface as well. */
export const publicSurface = [
  'millrace.acknowledge',
  'millrace.add_columns',
  'millrace.adopt',
  'millrace.attach',
  'millrace.begin',
  'millrace.cancel',
  'millrace.check_invariants',
  'millrace.complete_stage',
  'millrace.cost_of',
  'millrace.cut_over_way',
  'millrace.define',
  'millrace.doctor',
  'millrace.engine',
  'millrace.fail_stage',
  'millrace.figures',
  'millrace.hurry',
  'millrace.metadata_of',
  'millrace.now',
  'millrace.pause',
  'millrace.prioritise',
  'millrace.prune',
  'millrace.replay',
  'millrace.resend',
  'millrace.reset',
  'millrace.reset_children',
  'millrace.retry',
  'millrace.run_of',
  'millrace.series',
  'millrace.set_cut_over',
  'millrace.setting',
  'millrace.silence',
  'millrace.skip',
  'millrace.stage_columns_ddl',
  'millrace.stage_costs',
  'millrace.start',
  'millrace.start_stage',
  'millrace.sweep',
  'millrace.test_channel',
  'millrace.throttle',
  'millrace.timeline',
  'millrace.unpause',
  'millrace.unsilence',
  'millrace.unthrottle',
  'millrace_evidence.entity_costs',
];

/** Whether people call the function of this name, given with its schema. */
export function isPublic(name: string): boolean {
  return name.startsWith('public.millrace_') || publicSurface.includes(name);
}
