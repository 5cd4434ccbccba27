// The functions that people call, by SQL or through the Data API. The build stores their comments, which Studio shows.

/** Every `public.millrace_*` belongs to the surface as well. */
export const publicSurface = [
  'millrace.add_columns',
  'millrace.attach',
  'millrace.bypass',
  'millrace.cancel',
  'millrace.check_invariants',
  'millrace.check_slice',
  'millrace.complete_stage',
  'millrace.define',
  'millrace.define_limit',
  'millrace.doctor',
  'millrace.drop_limit',
  'millrace.end_bypass',
  'millrace.engine',
  'millrace.fail_stage',
  'millrace.figures',
  'millrace.hurry',
  'millrace.metadata_of',
  'millrace.now',
  'millrace.pause',
  'millrace.prune',
  'millrace.reset',
  'millrace.reset_children',
  'millrace.retry',
  'millrace.run_of',
  'millrace.series',
  'millrace.set_up',
  'millrace.setting',
  'millrace.skip',
  'millrace.stage_costs',
  'millrace.start',
  'millrace.start_stage',
  'millrace.sweep',
  'millrace.take_up',
  'millrace.throttle',
  'millrace.throttle_limit',
  'millrace.timeline',
  'millrace.unpause',
  'millrace.unthrottle',
  'millrace.unthrottle_limit',
  'millrace_evidence.entity_costs',
];

/** Returns whether people call the function of this name, given with its schema. */
export function isPublic(name: string): boolean {
  return name.startsWith('public.millrace_') || publicSurface.includes(name);
}
