-- Removes Millrace from a database: all that an install made, and nothing else. It is one
-- statement, which does all of it or nothing. Kept are the columns of your tables with what they
-- show, the extensions and the secrets in Vault. It refuses while runs are live, and where
-- something of yours depends on what would go. Built from engine/ by `npm run check -- --write`;
-- change it there.
do $uninstall$
declare
  v_give_up timestamptz;
  v_functions oid[] := array(
    select to_regprocedure(s)
    from unnest(array[
      'millrace.now()', 'millrace.stage_columns(text)',
      'millrace.stage_columns_ddl(text, text)',
      'millrace.check_status_words(regclass, text[])', 'millrace.check_table(regclass)',
      'millrace.check_key(millrace.pipelines)',
      'millrace.check_columns(millrace.pipelines, text[])',
      'millrace.check_projected(millrace.pipelines, text[])',
      'millrace.has_columns(millrace.pipelines, text)',
      'millrace.written_rows(millrace.pipelines, text, text[], text[], text)',
      'millrace.intake_body(millrace.pipelines, text, text, text)',
      'millrace.write_intake(millrace.pipelines, text)',
      'millrace.projection_branch(millrace.pipelines, int4, text)',
      'millrace.dirty_condition(text, text, bool)',
      'millrace.write_by_stage(text, text, text)',
      'millrace.write_projection(millrace.pipelines, text)',
      'millrace.size_expression(regclass, name[], bool)',
      'millrace.write_rows(millrace.pipelines, text, text[])',
      'millrace.write_lock(millrace.pipelines, text)',
      'millrace.write_metadata(millrace.pipelines, text)',
      'millrace.write_row_triggers(millrace.pipelines)',
      'millrace.detach_old(millrace.pipelines)', 'millrace.key_type(millrace.pipelines)',
      'millrace.branches(int4[], text[])', 'millrace.quote_field(text)',
      'millrace.write_function(text, text)',
      'millrace.write_way(text, text, int4[], text[], text)', 'millrace.write_dispatch()',
      'millrace.write_project_entities(int4[], text[])', 'millrace.attach(text)',
      'millrace.latest_version(int4)',
      'millrace.batch_of(millrace.stages, uuid, millrace.claimed[], text[], int8, millrace.built[])',
      'millrace.measured_rows(millrace.stages, millrace.claimed[], text[], int8)',
      'millrace.built_row(millrace.stages, millrace.claimed)',
      'millrace.fill_batch(millrace.stages, uuid, millrace.claimed[], text[], int8)',
      'millrace.held_batch(millrace.stages, uuid, int8[], int8)',
      'millrace.needs_of(int8, int4, int4, int8)', 'millrace.size_of_needs(int8, int4, int4)',
      'millrace.hold_runs(int8[])', 'millrace.cancel_one(int8)', 'millrace.cancel(int8)',
      'millrace.check_dropped_stages(int4, jsonb)',
      'millrace.check_counted_stages(int4, jsonb)',
      'millrace.check_moved(text, regclass, text)',
      'millrace.check_parents(text, regclass, text)',
      'millrace.check_changed_kinds(int4, jsonb)',
      'millrace.check_changed_children(int4, jsonb)',
      'millrace.refuse_value(jsonb, text[], text, text)', 'millrace.table_named(text)',
      'millrace.function_named(text, text)', 'millrace.has_column(jsonb, text)',
      'millrace.check_shape(jsonb)', 'millrace.check_needs(jsonb, text[])',
      'millrace.check_stage(jsonb, text[], jsonb)', 'millrace.edges_to(jsonb)',
      'millrace.order_stages(jsonb)', 'millrace.check_entity(jsonb)',
      'millrace.check_definition(jsonb)',
      'millrace.stale_reason(millrace.attempt_state, jsonb)',
      'millrace.verdict_on_end(millrace.attempts, millrace.work, bool, bool)',
      'millrace.verdict_on_report(millrace.attempts, millrace.work, text)',
      'millrace.check_fencing(millrace.work[], int8[], int4[])',
      'millrace.size_fault(millrace.work, millrace.stages)',
      'millrace.verdict_of(millrace.work[], millrace.work, millrace.attempts, text, bool, bool, bool, bool, bool)',
      'millrace.lock_uniform_batch(millrace.work[])', 'millrace.verdicts_of(millrace.work[])',
      'millrace.record_items(millrace.work[])', 'millrace.check_invariants()',
      'millrace.slice_end(int8, int4)', 'millrace.check_between(int8, int8)',
      'millrace.check_slice(int8, int4)', 'millrace.go_on_checking(int4)',
      'millrace.invariant_findings(bool)', 'millrace.alive_since()',
      'millrace.live_workers(int4)', 'millrace.has_ready_work(int4)',
      'millrace.may_scale_out(millrace.stages)',
      'millrace.next_alone(millrace.stages, bool, bool)',
      'millrace.claim_together(millrace.stages, uuid, uuid, int4)',
      'millrace.claim_alone(millrace.stages, uuid, uuid, int8)',
      'millrace.claim(millrace.stages, millrace.workers, int4)',
      'millrace.work_on(uuid, int4)', 'millrace.drop_claims(uuid, uuid, int4)',
      'millrace.project_started(millrace.stages, text[])', 'millrace.held_items(uuid, int8[])',
      'millrace.give_back(millrace.stages, uuid, int8[], int8[])',
      'millrace.advance(int4, int8[], bool)', 'millrace.advance_each(int4, int8[])',
      'millrace.finish_runs(int4, int8[])', 'millrace.complete(int4, millrace.work[], int4)',
      'millrace.close_completed(millrace.work[], timestamptz, bool, text[], millrace.ready[])',
      'millrace.apply_results(int4, millrace.work[])',
      'millrace.change_of(text, text, text, text, timestamptz, timestamptz)',
      'millrace.work_on(millrace.attempts, text, text, jsonb, jsonb, int4)',
      'millrace.limits_of(jsonb)', 'millrace.deadline_of(jsonb)',
      'millrace.save_stages(int4, jsonb)', 'millrace.switch_stages(int4, jsonb)',
      'millrace.graph_of(jsonb)', 'millrace.after_of(int4, jsonb)',
      'millrace.save_version_stages(int4, int4, jsonb)', 'millrace.note_awaited(int4)',
      'millrace.save_version(int4, jsonb)', 'millrace.add_columns(regclass, text[])',
      'millrace.save_pipeline(jsonb, regclass)', 'millrace.lock_table(jsonb, regclass)',
      'millrace.define(jsonb)', 'millrace.definition_schema()',
      'millrace.shared_limit_schema()', 'millrace.setting_findings()',
      'millrace.schedule_findings()', 'millrace.doorbell_findings()',
      'millrace.missing_function_finding()', 'millrace.ready_work_finding()',
      'millrace.fault_of(text)', 'millrace.pipeline_findings()', 'millrace.time_findings()',
      'millrace.error_finding()', 'millrace.doctor(bool)', 'millrace.wake_headers()',
      'millrace.wake_secret_remedy()', 'millrace.post(text, jsonb)',
      'millrace.last_answers(int4)', 'millrace.answer_remedy(text, int4)',
      'millrace.successor_of(millrace.attempts)',
      'millrace.address_ends(millrace.work[], int8[])',
      'millrace.record_ends(millrace.work[])', 'public.millrace_resume(json)',
      'public.millrace_poll(int4, int4)', 'millrace.check_job_states(jsonb)',
      'public.millrace_note_jobs(jsonb)', 'millrace.owner_message(jsonb, int8)',
      'millrace.backoff_seconds(jsonb, int4)', 'millrace.retry_due(int4, jsonb, int4)',
      'millrace.close_failed(millrace.work[])', 'millrace.fail(int4, millrace.work[])',
      'millrace.end_runs(int8[], millrace.run_status, int4)',
      'millrace.on_status_written(int4, text, text, text[], text[])',
      'millrace.forget(int4, text[])', 'millrace.delete_runs(int8[])',
      'millrace.write_entities(int4, text, text, millrace.change[], text[], text[])',
      'millrace.attempt_of_job(text)', 'public.millrace_job_owner(jsonb)',
      'public.millrace_note_faults(jsonb)', 'millrace.note_on_attempts(jsonb)',
      'millrace.faulty_jobs()', 'millrace.writes_entities(int4)',
      'millrace.lock_attempts(int8[])', 'millrace.report(text, text, text, jsonb)',
      'millrace.error_kind(text, text)',
      'millrace.report_caught(text, text, text, text, jsonb)', 'millrace.known_pipelines()',
      'millrace.copy_metadata(int4, text[])', 'millrace.refuse_metadata(text[])',
      'millrace.metadata_of(int8)', 'millrace.sweep_metadata(int4)',
      'millrace.copy_earlier_results(int8[], int4[])',
      'millrace.is_only_root(millrace.version_stages)',
      'millrace.new_runs(int4, text[], int4, int4)',
      'millrace.refuse_missing_needs(int8[], int4)',
      'millrace.enqueue_stage(int8[], int4, bool, bool)',
      'millrace.start_sibling_branches(int4, int4, int8[])',
      'millrace.apply_outcomes(millrace.work[], int4)',
      'millrace.late_attempts(millrace.work[])', 'millrace.mark_late(millrace.work[], int8[])',
      'millrace.without_late(millrace.work[], millrace.work[])',
      'millrace.put_off(millrace.work[], text)',
      'millrace.report_passed_over(text, text, text, text)',
      'millrace.apply_outcomes_unprojected(millrace.work[])',
      'millrace.apply_outcomes_in_halves(millrace.work[], timestamptz, bool)',
      'millrace.apply_outcomes_guarded(millrace.work[], int4, timestamptz)',
      'millrace.storable_item(json)', 'millrace.items_of(json)',
      'millrace.item_fault(jsonb, text, int8)', 'millrace.parse_items(json, text)',
      'millrace.retention_days(millrace.pipelines)', 'millrace.lock_prunable(int8[])',
      'millrace.prune_runs(int8[])',
      'millrace.prune_pipeline(millrace.pipelines, timestamptz)', 'millrace.begin_pruning()',
      'millrace.schedule_pruning(bool)', 'millrace.prune()',
      'millrace.project_queued(int4, int4, int4[], text[])',
      'millrace.supersede(int8[], int4[])', 'millrace.start_over(int8[], int4, bool)',
      'millrace.show_new_runs(int4, int4, int8[], text[])',
      'millrace.queue_here(int4, int4, text[], text[], bool, int4)',
      'millrace.queue_stage(int4, int4, text[], text[], bool, int4)', 'millrace.contracts()',
      'millrace.engine()', 'millrace.refuse_contract()', 'millrace.capped(int8, int4)',
      'millrace.check_condition(text, jsonb)', 'millrace.runs_to_replay(text, jsonb, int4)',
      'millrace.replay(text, jsonb, bool)', 'millrace.is_latest_run(int8)',
      'millrace.is_last_word(millrace.attempts)', 'millrace.name_parents(int4, int8[])',
      'millrace.retry_stage(int4, text, int8[])', 'millrace.retry_runs(int8[])',
      'millrace.refuse_orphan(millrace.runs)', 'millrace.retry_one(int8, text)',
      'millrace.retry(int8, text)', 'millrace.bounded_cpu(float8)',
      'millrace.learn_row_cost(int4, float4, int8)', 'millrace.learn_from_loss(int4, uuid[])',
      'millrace.choose_places(int4)', 'millrace.places_of(millrace.stages)',
      'millrace.explain(text)', 'millrace.status_columns_of(millrace.pipelines)',
      'millrace.row_faults(int8, int8)',
      'public.millrace_claim(text, text, uuid, uuid, int4, int4)',
      'public.millrace_complete(uuid, int4, json, int4, bool)', 'millrace.held_by(uuid)',
      'public.millrace_renew(uuid, int8[])', 'public.millrace_leave(uuid, bool, float4, int8)',
      'millrace.must_stay(millrace.workers)', 'millrace.schedule_polls()',
      'millrace.wake_job_poll()', 'millrace.keep_polling()', 'millrace.check_setting()',
      'millrace.setting(text)', 'millrace.batch_bytes(text)', 'millrace.batch_bytes()',
      'millrace.ways_of(int4)', 'millrace.first_stage(int4)',
      'millrace.begins_runs(int4, int4)',
      'millrace.lock_rows_named(millrace.pipelines, text[], bool)',
      'millrace.run_under_way(int4, int4, text)',
      'millrace.start(text, text, text, int4, bool)', 'millrace.fail_overdue(int8[])',
      'millrace.sweep_deadlines(int4, int4)', 'millrace.fail_lost(int8[])',
      'millrace.sweep_leases(int4, int4)', 'millrace.portion()', 'millrace.wake_ready(int4)',
      'millrace.forget_leftovers()', 'millrace.sweep_part(text, int8)',
      'millrace.sweep_portion(text, int8)', 'millrace.to_sweep(text[])',
      'millrace.note_sweep()', 'millrace.sweep()', 'millrace.sweep_all()',
      'public.millrace_sweep()', 'millrace.pipelines_to_sweep()', 'millrace.rest_to_sweep()',
      'millrace.upkeep_to_sweep()', 'millrace.project(int4, millrace.change[])',
      'millrace.wait(int4, millrace.work[])', 'millrace.release(int4, millrace.work[])',
      'millrace.fail_tired(int4, millrace.work[])', 'millrace.cancel_attempts(int8[], int4[])',
      'millrace.project_cancelled(millrace.cancelled[])',
      'millrace.stages_to_wake(int4[], int4)', 'millrace.wake_list(int4[])',
      'millrace.wake(int4[])', 'public.millrace_wake(jsonb)', 'millrace.held_counts()',
      'millrace.live_counts(int4)', 'millrace.timeline(int8)',
      'millrace.stage_named(text, text)', 'millrace.call_of(millrace.workers, int4)',
      'millrace.claim_answer(millrace.call, text, text, json, int4[], json, int4, bool, bool)',
      'millrace.sweep_due(text)', 'millrace.sweep_due()',
      'millrace.free_places(millrace.stages, millrace.workers, bool)',
      'millrace.claim_allowed(millrace.call, int4, bool)',
      'millrace.hand_out(millrace.call, uuid, millrace.claimed[], int8[], text[])',
      'millrace.claim_next(millrace.call, int4, int4, json, int4[], bool)',
      'millrace.repeat_answer(millrace.call, json)', 'millrace.followers_with_work(int4)',
      'millrace.answer_in_sequence(millrace.call, int4, int4, json, int4[], bool)',
      'millrace.share_of(millrace.shared_limits)',
      'millrace.note_refusals(int4, millrace.work[])',
      'millrace.lowered(millrace.shared_limits, millrace.limit_refusals)',
      'millrace.on_the_clock(millrace.shared_limits)',
      'millrace.whole(millrace.shared_limits)', 'millrace.learn(int4)',
      'millrace.clear_the_way(millrace.fan_outs, text[])',
      'millrace.adopt_runs(millrace.fan_outs, text[], text[])',
      'millrace.add_child_runs(millrace.fan_outs, text[], text[])',
      'millrace.add_children(millrace.fan_outs, text[], text[])', 'millrace.bucket_bounds()',
      'millrace.figure_columns()', 'millrace.add_codes(jsonb[])', 'millrace.delta_sql()',
      'millrace.codes_sql(text, text, text)', 'millrace.adding_sql(text, text)',
      'millrace.fold_figures(int4)', 'millrace.prune_figures(int4)', 'millrace.sweep_pulses()',
      'millrace.prune_old()', 'millrace.lock_waiting(millrace.pipelines, text, int4)',
      'millrace.begin(text, text, int4)', 'millrace.old_means(int4, text, text)',
      'millrace.old_value_of(int4, text)', 'millrace.value_meant(int4, text, text)',
      'millrace.write_follower(millrace.pipelines, text, text)',
      'millrace.begin_adoption(millrace.pipelines, text, text, text)',
      'millrace.take_unadopted(millrace.pipelines, text, millrace.adoptions, int4)',
      'millrace.write_adopted(millrace.pipelines, text, text[], text[], text[])',
      'millrace.begin_adopted(millrace.pipelines, text[], int4[])',
      'millrace.adopt_portion(millrace.pipelines, text, int4)',
      'millrace.next_unadopted(millrace.pipelines, text, int4)',
      'millrace.end_adoption(millrace.pipelines)', 'millrace.landings(int4)',
      'millrace.value_call(millrace.pipelines, text, text, text)',
      'millrace.given_expressions(millrace.pipelines)',
      'millrace.stages_lacking(millrace.pipelines, text, jsonb)',
      'millrace.count_unadopted(millrace.pipelines, text, text, text)',
      'millrace.adopting_pipeline(text)', 'millrace.adopt(text, text, text, bool, text, int4)',
      'millrace.check_turns(jsonb)', 'millrace.turn_fault(jsonb, text, int8)',
      'millrace.void_reason(millrace.attempts, uuid)',
      'millrace.append_turns(millrace.attempts, jsonb)',
      'public.millrace_checkpoint(uuid, int8, uuid, jsonb)',
      'public.millrace_turns(uuid, int8, uuid)', 'millrace.drop_turns(millrace.stages, json)',
      'millrace.execution_began(int8, int4, int4)', 'millrace.follow_bound(int4, int4)',
      'millrace.follow_bounds(int4)', 'millrace.silence(interval, text, text, text, text)',
      'millrace.unsilence(int8)', 'millrace.mark_acknowledged(int8, text)',
      'millrace.acknowledge(int8)', 'millrace.channel_named(text)',
      'millrace.test_channel(text)', 'millrace.resend(text)', 'millrace.alert_findings()',
      'millrace.prune_rule_alerts(timestamptz)', 'millrace.delivery_time()',
      'millrace.delivery_pause(int4)', 'millrace.events_to_tell(timestamptz)',
      'millrace.event_of(millrace.rule_alerts, text, timestamptz)', 'millrace.most_events()',
      'millrace.add_events(int4, jsonb, int8, timestamptz)',
      'millrace.write_messages(timestamptz)', 'millrace.send_messages()',
      'millrace.due_messages()', 'millrace.wake_alerts_send()',
      'millrace.bury_message(millrace.alert_messages, int4, text)',
      'public.millrace_take_messages(int4)', 'millrace.taken_messages(int8[])',
      'millrace.note_delivery(jsonb)', 'public.millrace_note_deliveries(jsonb)',
      'millrace.rule_fault(millrace.alert_rules)', 'millrace.check_rule()',
      'millrace.rule_of(text, text, jsonb)', 'millrace.check_alerts(jsonb)',
      'millrace.save_alerts(jsonb)',
      'millrace.rule_targets(millrace.alert_rules[], timestamptz)',
      'millrace.note_values(millrace.alert_rules[], timestamptz)',
      'millrace.judge_kind(millrace.alert_rules[], timestamptz)',
      'millrace.judge_or_report(millrace.alert_rules[], timestamptz)',
      'millrace.resolve_unwatched(timestamptz)', 'millrace.judge_rules()',
      'millrace.in_words(interval)', 'millrace.still_late(int8[])', 'millrace.late_runs(int4)',
      'millrace.late_counts()', 'millrace.raise_alerts(int4)', 'millrace.resolve_alerts(int4)',
      'millrace.forget_alerts(int8[])', 'millrace.prune_alerts(timestamptz)',
      'millrace.check_answer()', 'millrace.outcomes_of_answers(int8[])',
      'millrace.take_answers()', 'millrace.apply_decisions()',
      'public.millrace_decide(int8, jsonb)', 'millrace.pressures_in(jsonb)',
      'millrace.check_foreign_pressure(jsonb, text[], text)',
      'millrace.check_back_pressure(jsonb, jsonb)', 'millrace.save_back_pressures(int4)',
      'millrace.pass_back_pressure(int4)', 'millrace.room_before_later(int4)',
      'millrace.keys_refused_at(int4)', 'millrace.stages_to(int4)',
      'millrace.begin_stage(int4, int8[], bool, bool, bool)',
      'millrace.without(int8[], int8[])', 'millrace.runs_to_skip(int4, int8[], bool)',
      'millrace.why_unmet()', 'millrace.begin_open(int8[])',
      'millrace.advance_others(int4, int8[])', 'millrace.begin_followers(int4, int8[])',
      'millrace.skip_stage(int4, int8[], jsonb)', 'millrace.add_skipped(int4, int8[], jsonb)',
      'millrace.continue_after_skip(int4, int8[])', 'millrace.skip_failed_stage(int4, int8[])',
      'millrace.average_use(int4, text)', 'millrace.window_start(millrace.shared_limits)',
      'millrace.window_over(millrace.shared_limits)',
      'millrace.spent_under(millrace.shared_limits, text)',
      'millrace.room_in_budget(millrace.shared_limits, millrace.stages, int4)',
      'millrace.is_spent_under(millrace.shared_limits, int4)',
      'millrace.is_spent(millrace.stages)', 'millrace.note_shared(int4, millrace.work[])',
      'millrace.declared_window_start(millrace.shared_limits)',
      'millrace.sum_limit_uses(int4)', 'millrace.hold_free_runs(int4, int8[])',
      'millrace.do_to_held(millrace.bulks, int8[])',
      'millrace.do_to_each(millrace.bulks, int8[])',
      'millrace.set_overtaken_apart(millrace.bulks, int8[])',
      'millrace.do_to_slice(millrace.bulks, int8[])', 'millrace.bulk_fault(millrace.bulks)',
      'millrace.save_slice(millrace.bulks, int8, int8[], int4[])', 'millrace.work_slice(int8)',
      'millrace.work_bulks()', 'millrace.schedule_bulks()',
      'millrace.shown_bulk(millrace.bulks)', 'millrace.check_bulk(jsonb, jsonb)',
      'millrace.estimate_cost(int4, jsonb, int8[])', 'millrace.preview_of(int4, jsonb, jsonb)',
      'millrace.preview_bulk(millrace.caller, jsonb, jsonb, text)',
      'millrace.bulk_seen(millrace.caller, int8)',
      'millrace.refuse_bulk(millrace.bulks, text)',
      'millrace.act_in_bulk(millrace.caller, jsonb)', 'millrace.why_bypassed(text)',
      'millrace.bypass_held(millrace.stages, int8[], text)',
      'millrace.bypass_charged(millrace.stages, int8[], text)',
      'millrace.bypass_portion(millrace.stages, int8[], text, timestamptz)',
      'millrace.bypass_queued(millrace.stages, int4)', 'millrace.lock_before_stages(int4)',
      'millrace.save_bypass(int4, text, timestamptz, bool, int8)',
      'millrace.begin_bypass(millrace.stages, text, timestamptz, int8)',
      'millrace.finish_bypass(int4)', 'millrace.end_bypass_of(millrace.stages)',
      'millrace.end_bypass_of_changed(int4)', 'millrace.bypass(text, text, text, timestamptz)',
      'millrace.end_bypass(text, text)', 'millrace.is_spent_out(millrace.stages)',
      'millrace.bypass_due(int4)', 'millrace.settle_bypass(millrace.stages)',
      'millrace.sweep_bypasses(int4, int4)', 'millrace.check_when_spent(jsonb)',
      'millrace.save_when_spent(int4, jsonb)', 'millrace.shown_bypass(int4)',
      'millrace.abandon_fan_outs(int8[], int4[])', 'millrace.cancel_given_up(int4, text[])',
      'millrace.cancel_held(int8[], timestamptz)', 'millrace.forget_fan_outs(int8[])',
      'millrace.cancel_children(int4)', 'millrace.item_numbers(text[])',
      'millrace.check_items(jsonb)', 'millrace.check_numbers(millrace.fan_outs, text[])',
      'millrace.check_rows_exist(millrace.pipelines, text[], text[])',
      'millrace.check_rows_differ(millrace.fan_outs, text[], text[])',
      'millrace.check_inserted(regprocedure, jsonb, text[], text[])',
      'millrace.check_limits(jsonb, jsonb)', 'millrace.check_quota(jsonb)',
      'millrace.check_conditions(jsonb, jsonb)',
      'millrace.check_predicate(jsonb, jsonb, text[], text[])',
      'millrace.check_condition_path(jsonb, text[], text[])', 'millrace.paths_of(jsonpath)',
      'millrace.stage_with_column(jsonb, text)',
      'millrace.check_condition_names(jsonb, jsonb, text[], text[])',
      'millrace.check_on_demand(jsonb, jsonb)', 'millrace.check_ends(jsonb)',
      'millrace.check_thresholds(jsonb, jsonb)', 'millrace.contains_pipeline(int4, text)',
      'millrace.check_child(jsonb, jsonb)', 'millrace.stages_after(text, jsonb)',
      'millrace.check_rival(jsonb, jsonb)', 'millrace.check_fan_in(jsonb)',
      'millrace.take_from_groups(millrace.stages, text[], int4, uuid, timestamptz)',
      'millrace.wait_for_turn(millrace.stages, timestamptz)',
      'millrace.take_by_turns(millrace.stages, uuid, int4, uuid, timestamptz, int8)',
      'millrace.claim_alone_of_group(millrace.stages, millrace.workers, int8)',
      'millrace.claim_groups(millrace.stages, millrace.workers, int4, millrace.limiters)',
      'millrace.consume_child_tallies(int8)', 'millrace.recount_children(int8)',
      'millrace.hold_fan_out(int8)', 'millrace.collect_children(int8)',
      'public.millrace_collect_children(int8[])', 'millrace.parents_to_collect(int8[])',
      'millrace.is_done(int8, int4)', 'millrace.running_of(int8[])',
      'millrace.thresholds_hold(int8, jsonb)', 'millrace.open_runs(int4, int8[])',
      'millrace.runs_to_begin(int4, int8[])', 'millrace.unmet_runs(int4, int8[])',
      'millrace.attempt_costs(int8[])', 'millrace.keep_costs(int8[])',
      'millrace.sum_costs(jsonb, jsonb)', 'millrace.keep_former_runs(int8[])',
      'millrace.cost_of(int8)', 'millrace.stage_costs(int8)',
      'millrace_evidence.entity_costs(text, text[])', 'millrace.use_new_pipeline()',
      'millrace.share_of(text)', 'millrace.new_way_ids(millrace.pipelines, text[])',
      'millrace.replacing_pipeline(text)',
      'millrace.check_flag(millrace.pipelines, text, numeric, text[])',
      'millrace.set_cut_over(text, text, numeric, text[])',
      'millrace.key_of_row(millrace.pipelines, text)', 'millrace.cut_over_way(text, text)',
      'millrace.queue_one_way(int4, int4, int4, text[], text[], bool)',
      'millrace.must_see_both_ways(int4[])',
      'millrace.refuse_other_way(int4, int4, int4, text[])',
      'millrace.clear_entities(int4, text[])', 'millrace.open_decisions(int4, int8[])',
      'millrace.why_undecided(millrace.attempt_state, jsonb)', 'millrace.close_held(int8[])',
      'millrace.close_decisions(int4)', 'millrace.forget_decisions(int8[])',
      'millrace.prune_decisions()', 'millrace.decision_faults(int8, int8)',
      'millrace.deed_findings()', 'millrace.check_replaces(jsonb)',
      'millrace.check_untied(millrace.pipelines, text)',
      'millrace.check_replaced(text, regclass, text)', 'millrace.save_cut_over(int4, jsonb)',
      'millrace.act_fields()', 'millrace.need_fields(jsonb, text[])',
      'millrace.asked_end(jsonb)', 'millrace.answered_before(millrace.caller, jsonb)',
      'millrace.act_on_run(millrace.caller, jsonb)', 'millrace.do_to_run(int8, jsonb)',
      'millrace.act_on_stage(millrace.caller, jsonb, int8)',
      'millrace.act_on_operator(millrace.caller, jsonb, int8)',
      'millrace.do_act(millrace.caller, jsonb, int8)', 'public.millrace_act(jsonb)',
      'millrace.is_silenced(text, text, text)', 'millrace.alert_seen(millrace.caller, int8)',
      'millrace.acknowledge_alert(millrace.caller, jsonb)',
      'millrace.asked_silence(millrace.caller, jsonb)',
      'millrace.act_on_alert(millrace.caller, jsonb, int8)', 'millrace.filter_fields()',
      'millrace.check_asked(jsonb, jsonb, text)', 'millrace.asked_time(jsonb, text)',
      'millrace.asked_cursor(jsonb, bool)', 'millrace.read_filter(millrace.caller, jsonb)',
      'millrace.filter_conditions(jsonb)', 'millrace.filter_source(jsonb, text, int4)',
      'millrace.filter_portion(jsonb)', 'millrace.find_runs(jsonb, int8, int4, bool)',
      'millrace.ended_runs(jsonb, text, int4)', 'millrace.find_ended(jsonb, text, int4)',
      'millrace.limit_seen(millrace.caller, text)', 'millrace.shown_limits(millrace.caller)',
      'millrace.act_on_limit(millrace.caller, jsonb, int8)',
      'millrace.shown_line(millrace.journal)', 'millrace.shown_pause(int8)',
      'millrace.shown_stages(text[])', 'public.millrace_overview(jsonb)',
      'public.millrace_pipeline(jsonb)', 'public.millrace_series(jsonb)',
      'public.millrace_dead_letters(jsonb)', 'millrace.find_lines(text, text, jsonb)',
      'millrace.line_condition(millrace.caller, jsonb)', 'public.millrace_alerts(jsonb)',
      'public.millrace_journal(jsonb)', 'millrace.search_runs(millrace.caller, text, text[])',
      'public.millrace_search(jsonb)', 'millrace.cut_text(text, int4)',
      'millrace.shown_payload(jsonb)', 'millrace.shown_error(jsonb, bool)',
      'millrace.standing_of(int8)', 'millrace.shown_runs(int8[])',
      'public.millrace_runs(jsonb)', 'millrace.shown_children(int8)',
      'millrace.shown_attempts(int8, bool)', 'public.millrace_run(jsonb)',
      'public.millrace_attempt(jsonb)', 'millrace.check_due(jsonb)',
      'millrace.missing_due_index(millrace.pipelines)', 'millrace.save_due(int4, jsonb)',
      'millrace.is_rested(int4[], text, timestamptz)',
      'millrace.due_rows(millrace.pipelines, timestamptz, text, int4)',
      'millrace.lock_due(millrace.pipelines, text[])',
      'millrace.start_held(millrace.pipelines, int4, text[], timestamptz)',
      'millrace.next_due(millrace.pipelines, millrace.due_progress, int4)',
      'millrace.start_due_runs(int4, int4)', 'millrace.due_findings()',
      'millrace.save_endings(int4, int4, jsonb)',
      'millrace.complete_or_end(int4, millrace.work[])',
      'millrace.endings_of(int4, millrace.work[])',
      'millrace.complete_and_end(int4, millrace.work[], int8[], text[])',
      'millrace.skip_the_rest(int8[])', 'millrace.tally_done(int4[], int8[])',
      'millrace.show_skipped_rest(int4, int8[])', 'millrace.take_ending_back(millrace.runs)',
      'millrace.child_failure(millrace.fan_outs)',
      'millrace.fan_in_verdict(millrace.fan_outs, jsonb, timestamptz)',
      'millrace.fan_in_output(millrace.fan_outs, text)',
      'millrace.leave_children(millrace.stages, int8[])',
      'millrace.join_children(millrace.fan_outs)', 'millrace.bucket_quantile(int8[], float8)',
      'millrace.figures_of(text, text)',
      'millrace.figure_rows(int4, int4, timestamptz, timestamptz, bool)',
      'millrace.summed_figures(int4, int4, timestamptz, timestamptz, interval)',
      'millrace.figures(text, text, timestamptz, timestamptz)',
      'millrace.check_series(timestamptz, timestamptz, interval)',
      'millrace.series(text, text, timestamptz, timestamptz, interval)',
      'millrace.queue_at_gate(int4, int8[])', 'millrace.pass_if_open(int4, int8[])',
      'millrace.queued_at_gate(int4, int8[])', 'millrace.pass_at_once(int4, int8[])',
      'millrace.enter_gate(int4)', 'millrace.pass(millrace.stages, millrace.work[], bool)',
      'millrace.read_by_given(int4, name[])',
      'millrace.write_asked(millrace.pipelines, text, text[])',
      'millrace.asked_of_rows(int4, text[])', 'millrace.brought_along(int4, int4, text[])',
      'millrace.given_at_first(int4, int4, text[])', 'millrace.note_given(int4, int8[])',
      'millrace.note_done_before(int8[], int4)', 'millrace.given_runs(int4, int8[])',
      'millrace.skip_given_needs(int8[], int4)', 'millrace.why_given()',
      'millrace.forget_given(int8[], int4[])', 'millrace.remember_begun(int8[])',
      'millrace.forget_begun(int4, text[])', 'millrace.groups_with_arrivals(int4, text, int4)',
      'millrace.read_arrivals(int4, text[], int4, int8, timestamptz)',
      'millrace.admit_arrivals(int4, millrace.limiters, int4)',
      'millrace.end_turns(millrace.stages, text[], text[], int8, timestamptz)',
      'millrace.give_back_turns(millrace.stages, int8[], int8[])',
      'millrace.hold_back(millrace.stages, millrace.payer, text, int8[])',
      'millrace.due_of_payer(millrace.stages, millrace.payer, bool)',
      'millrace.put_back(millrace.stages, int8[], timestamptz, jsonb)',
      'millrace.hold_message(jsonb, text, timestamptz)',
      'millrace.show_held(millrace.stages, int8[])',
      'millrace.show_going(millrace.stages, int8[])',
      'millrace.let_go(millrace.pipelines, int4)', 'millrace.sweep_quotas(int4)',
      'millrace.hurry_one(int8, text)', 'millrace.hurry(int8, text)',
      'millrace.run_of(text, text)', 'millrace.free_slots(int8[])',
      'millrace.wakes_for_freed(int8[])', 'millrace.counts_in_flight(jsonb)',
      'millrace.note_in_flight(millrace.stages, int8[], text[], uuid, uuid)',
      'millrace.count_attempts(millrace.stages, int4)',
      'millrace.check_slots(int4, uuid, int8)', 'millrace.free_of_key(millrace.stages, text)',
      'millrace.inherit_place(int8[])', 'millrace.note(text, text, text, int8[], jsonb)',
      'millrace.note_run(text, int8, text, jsonb)', 'millrace.keep_journal()',
      'millrace.prune_journal()', 'millrace.note_switched()', 'millrace.json_path(text, text)',
      'millrace.short_json(jsonb)', 'millrace.resolve_ref(jsonb, jsonb)',
      'millrace.alternative_for(jsonb, jsonb)', 'millrace.wanted_by(jsonb)',
      'millrace.value_fault(jsonb, jsonb)', 'millrace.scalar_fault(jsonb, jsonb)',
      'millrace.fault_of(jsonb, text, text, bool)',
      'millrace.object_fault(jsonb, jsonb, jsonb, text)',
      'millrace.kind_fault(jsonb, jsonb, jsonb, text)',
      'millrace.array_fault(jsonb, jsonb, jsonb, text)',
      'millrace.find_fault(jsonb, jsonb, jsonb, text, bool)',
      'millrace.schema_fault(jsonb, jsonb, text)',
      'millrace.with_defaults(jsonb, jsonb, jsonb)',
      'millrace.refuse_schema(text, jsonb, text, text)',
      'millrace.check_schema_bounds(jsonb, text, text, text, bool)',
      'millrace.check_schema_pattern(jsonb, text)',
      'millrace.check_schema_object(jsonb, text)',
      'millrace.check_schema_keywords(jsonb, text)', 'millrace.check_json_schema(jsonb, text)',
      'millrace.keep_to_quotas(millrace.stages, uuid, int8[])',
      'millrace.keep_to_quota(millrace.stages, millrace.payer, int8[])',
      'millrace.charge_starts(millrace.stages, millrace.payer, int8[])',
      'millrace.check_label(jsonb)', 'millrace.label_search(millrace.pipelines)',
      'millrace.missing_label_index(millrace.pipelines)', 'millrace.save_label(int4, jsonb)',
      'millrace.label_findings()',
      'millrace.keyed(millrace.shared_limits, millrace.limit_keys)',
      'millrace.save_limit_key(millrace.shared_limits, text)',
      'millrace.room_of_key(int4, text)', 'millrace.take_of_keys(int4, text[], int4)',
      'millrace.wake_keys(int4, text)',
      'millrace.learn_of_key(millrace.shared_limits, millrace.limit_refusals)',
      'millrace.sweep_limit_keys(int4)',
      'millrace.forget_refusals(millrace.shared_limits, text)',
      'millrace.check_key_rate(text, jsonb)', 'millrace.pass_limiter(int4, bool)',
      'millrace.tokens_of(jsonb, millrace.limiters)',
      'millrace.room_at(millrace.stages, millrace.limiters, int4)',
      'millrace.may_claim(millrace.stages)', 'millrace.lock_limiters(text)',
      'millrace.claim_limited(millrace.stages, millrace.workers, int4, bool)',
      'millrace.save_limiter(millrace.stages, millrace.limiters, int4, int4, int4)',
      'millrace.give_back_limits(millrace.stages, int8[], int8[])',
      'millrace.heed_clock(int4)', 'millrace.drop_old_news(int4)',
      'millrace.sweep_limits(int4)', 'millrace.counters()', 'millrace.stage_gauges()',
      'public.millrace_metrics()', 'public.millrace_health()',
      'millrace.undemanded_runs(int4, int8[])', 'millrace.why_undemanded()',
      'millrace.was_left_out(jsonb)', 'millrace.hold_stage(int8, text, bool)',
      'millrace.state_of(int8, int4)',
      'millrace.refuse_operation(int8, text, text, text, text)',
      'millrace.supersede(int8, int4[])', 'millrace.reopen_run(millrace.runs, int4[])',
      'millrace.token_claims()', 'millrace.caller()', 'millrace.enter()',
      'millrace.enter_to_act(text)', 'millrace.sees(millrace.caller, text)',
      'millrace.pipeline_seen(millrace.caller, text)',
      'millrace.stage_seen(millrace.pipelines, text)',
      'millrace.run_seen(millrace.caller, int8)', 'millrace.note_operator()',
      'millrace.pass_next(int4, timestamptz, int8, int4)',
      'millrace.pass_set(millrace.stages, int8[])',
      'millrace.next_gate(int4[], timestamptz[], int8[])', 'millrace.sweep_gates(int4)',
      'millrace.count_consecutive(millrace.fan_outs, int4, int4)',
      'millrace.pass_thresholds(millrace.fan_outs)',
      'millrace.pass_thresholds_guarded(millrace.fan_outs)',
      'millrace.note_pulses(text, int4[])', 'millrace.sum_usage(jsonb[], text)',
      'millrace.ms_between(timestamptz, timestamptz)', 'millrace.queue_attempts(int4, int8[])',
      'millrace.show_stage(int4, int8[], text, timestamptz, text)',
      'millrace.show_queued(int4, int8[])', 'millrace.window_end(jsonb, text)',
      'millrace.used_by(millrace.payer, text)', 'millrace.note_spending(millrace.work[])',
      'millrace.sum_uses(int4)', 'millrace.save_quota(int4, jsonb)',
      'millrace.attach_quota(millrace.pipelines, text)', 'millrace.name_payers(int4, int8[])',
      'millrace.inherit_quotas(int8[])', 'millrace.note_starts(int8[], timestamptz)',
      'millrace.clear_stages(millrace.runs, int4[])', 'millrace.reset_one(int8, text)',
      'millrace.reset(int8, text)', 'millrace.needing(int4, int4)',
      'millrace.retry_failed_children(millrace.fan_outs)',
      'millrace.reset_failed_children(int8, text)', 'millrace.reset_children(int8, text)',
      'millrace.check_retention(jsonb)', 'millrace.missing_time_index(regclass, text)',
      'millrace.retention_fault(text, text)', 'millrace.prune_rows(regclass, tid[])',
      'millrace.old_rows(regclass, text, timestamptz, millrace.prune_progress, int4)',
      'millrace.prune_table(millrace.pipelines, text, timestamptz)',
      'millrace.save_retention(int4, jsonb)',
      'millrace.due_to_prune(int4, text, text, int4, timestamptz)',
      'millrace.retention_findings()', 'millrace.reopen_fan_outs(int4, int8[])',
      'millrace.refile_items(int8, text[])', 'millrace.retry_items(millrace.fan_outs, text[])',
      'millrace.retry_child_runs(int4, int8[])', 'millrace.is_short(interval)',
      'millrace.commonest_error(int4, int4, timestamptz, timestamptz)',
      'millrace.figure_values(millrace.alert_rules[], timestamptz)',
      'millrace.queue_values(millrace.alert_rules[], timestamptz)',
      'millrace.late_values(millrace.alert_rules[], timestamptz)',
      'millrace.refusal_values(millrace.alert_rules[], timestamptz)',
      'millrace.run_sla_values(millrace.alert_rules[], timestamptz)',
      'millrace.engine_values()', 'millrace.rule_values(millrace.alert_rules[], timestamptz)',
      'millrace.plain_text(text, int4)', 'millrace.count_in_words(numeric)',
      'millrace.rule_message(millrace.alert_rules, millrace.rule_states, timestamptz)',
      'millrace.playbook_of(text)', 'millrace.rows_labelled(millrace.pipelines, text, int4)',
      'millrace.label_of(millrace.pipelines, text)', 'millrace.runs_found(text, text, int4)',
      'millrace.search(text, text, int4)', 'millrace.save_run_sla(int4, jsonb)',
      'millrace.carry_since(millrace.pipelines, int8[])',
      'millrace.ages_behind(int4, text, int4)',
      'millrace.count_ages(millrace.pipelines, text, int4)', 'millrace.follow_ages(int4)',
      'millrace.count_over(int8[], float8)', 'millrace.run_sla_findings()',
      'millrace.check_shared_limit(text, jsonb, bool)', 'millrace.lock_shared_limit(int4)',
      'millrace.shared_limit_named(text)',
      'millrace.set_shared_limit(millrace.shared_limits, jsonb)',
      'millrace.define_limit(text, jsonb)', 'millrace.drop_limit(text)',
      'millrace.check_shared_names(jsonb)', 'millrace.save_shared_names(int4)',
      'millrace.pass_shared(int4, bool)', 'millrace.bucket_of(millrace.shared_limits)',
      'millrace.in_flight_under(int4, int4)', 'millrace.in_flight_at(int4, int4)',
      'millrace.room_under(millrace.shared_limits, millrace.stages, int4)',
      'millrace.shared_room(millrace.stages, int4)', 'millrace.take_shared(int4, int4)',
      'millrace.rivals_of(int4, int4)', 'millrace.share_for(float8, int4, bool)',
      'millrace.note_share(int4, int4, int4, int4)',
      'millrace.throttle_shared(text, jsonb, timestamptz, text, int8)',
      'millrace.unthrottle_shared(text)', 'millrace.release_limit(text, text)',
      'millrace.throttle_limit(text, jsonb, timestamptz, text)',
      'millrace.unthrottle_limit(text, text)', 'millrace.sweep_shared_limits()',
      'millrace.learned_in_words(text)', 'millrace.shared_limit_findings()',
      'millrace.group_key(text, text)',
      'millrace.keys_expression(millrace.pipelines, text, text, text)',
      'millrace.group_keys(millrace.stages, text[])',
      'millrace.place_attempts(millrace.stages, int8[])',
      'millrace.assign_groups(int4, int8[])', 'millrace.adopt_attempts(millrace.stages, int4)',
      'millrace.groups_sorted_by(jsonb)', 'millrace.forget_groups(int4, jsonb)',
      'millrace.write_group_keys(millrace.pipelines, text)',
      'millrace.attach_groups(millrace.pipelines, text)',
      'millrace.rows_for_items(millrace.stages, text, jsonb)',
      'millrace.fan_out_of(millrace.attempts, int4)',
      'millrace.spawn_chunk(millrace.attempts, jsonb, bool)', 'millrace.hold_parent(int8)',
      'public.millrace_spawn(uuid, int8, uuid, jsonb, bool)',
      'millrace.start_stage(int8, text)', 'millrace.end_stage(int8, text, text, jsonb, jsonb)',
      'millrace.complete_stage(int8, text, jsonb)',
      'millrace.fail_one(int8, text, text, bool)',
      'millrace.fail_stage(int8, text, text, bool)', 'millrace.skip_one(int8, text)',
      'millrace.skip(int8, text)', 'millrace.begin_roots(int4, int8[])',
      'millrace.wait_for_child_runs(int4, int8[], timestamptz)',
      'millrace.parents_without_child(millrace.pipelines, int4, int8[], text[], text[])',
      'millrace.start_child_runs(int4, int8[])',
      'millrace.keys_named(millrace.pipelines, text[])',
      'millrace.refuse_missing_rows(millrace.pipelines, text[], text[])',
      'millrace.prioritise_entities(int4, text[], int4)',
      'millrace.entities_under_way(millrace.pipelines, int4, text[])',
      'millrace.start(text, text[], text, int4, bool)', 'millrace.actor(regclass)',
      'millrace.answer_by_value(int4, int4, text, text[])',
      'millrace.take_question_back(int4, int4, text[])',
      'millrace.refuse_status(text, text, text)', 'millrace.values_used(jsonb)',
      'millrace.check_status_columns(jsonb)', 'millrace.check_status_tables(jsonb)',
      'millrace.check_status_chain(jsonb)', 'millrace.check_status_values(jsonb)',
      'millrace.check_layers(jsonb)', 'millrace.check_status_names(jsonb)',
      'millrace.check_status(jsonb)', 'millrace.save_status(int4, int4, jsonb)',
      'millrace.ordered_values(int4, jsonb)', 'millrace.save_values(int4, int4, jsonb)',
      'millrace.rows_shown_wrong(millrace.pipelines, text[], int8, int8)',
      'millrace.status_faults(int8, int8)', 'millrace.history_faults(millrace.pipelines)',
      'millrace.errors_shown(int4, text[])',
      'millrace.give_up_by_value(int4, text, text, text[])',
      'millrace.standings(int4, text[], text[], text[])',
      'millrace.open_moves(int4, int4, int4, bool, text)',
      'millrace.leads_back(int4, text[], text)',
      'millrace.judged_values(int4, text[], text[], text[])',
      'millrace.on_values_written(int4, text[], text[], text[])',
      'millrace.refuse_retry(int4, text[], timestamptz[], timestamptz[])',
      'millrace.on_retries_moved(int4, text[], timestamptz[], timestamptz[])',
      'millrace.shown_stages(int4)', 'millrace.done_values(jsonb, bool)',
      'millrace.nothing_done(int4)', 'millrace.kept_values(int4)',
      'millrace.moves_within(int4)', 'millrace.moves_between(int4)',
      'millrace.moves_to_nothing(int4)', 'millrace.moves_of_calls(int4)',
      'millrace.resting_values(int4)', 'millrace.moves_of_questions(int4)',
      'millrace.moves_of_people(int4)', 'millrace.save_moves(int4)',
      'millrace.mark_drawn(int4)', 'millrace.status_figures(jsonb, bool)',
      'millrace.show_statement(millrace.pipelines, text, text, bool)',
      'millrace.show_with_history(jsonb, text[])', 'millrace.status_type(millrace.pipelines)',
      'millrace.status_columns(jsonb)', 'millrace.completed_targets(millrace.stages)',
      'millrace.is_last(millrace.stages)', 'millrace.is_plain_root(millrace.stages, jsonb)',
      'millrace.begun_branch(millrace.pipelines, text, millrace.stages)',
      'millrace.write_status_outcomes(millrace.pipelines, text, millrace.stages[])',
      'millrace.write_status_started(millrace.pipelines, text, millrace.stages[])',
      'millrace.write_status_queued(millrace.pipelines, text)',
      'millrace.write_status(millrace.pipelines, text)', 'millrace.show_status(int4, text[])',
      'millrace.rows_named(text[])', 'millrace.remedy_at_question(jsonb, text)',
      'millrace.remedy_of_move(int4, int4, text, text)',
      'millrace.answered_before(int4, text, text)',
      'millrace.remedy_of_waiting(int4, int4, text)',
      'millrace.refuse_move(int4, int4, int4, int4, bool, text, text, text[])',
      'millrace.shown_places(jsonb, jsonb)', 'millrace.changed_values(jsonb)',
      'millrace.rename_values(millrace.pipelines, text[], text[])',
      'millrace.show_changed(int4, jsonb)',
      'millrace.refuse_start(int4, text, text, text[], text, text)',
      'millrace.names_stage(int4, int4)', 'millrace.note_beginning(int4, int4, text, text[])',
      'millrace.start_at_value(int4, int4, text, text, text[])',
      'millrace.done_until(int4, int4, text)',
      'millrace.begin_at_value(int4, int4, text, text, text, text[])',
      'millrace.live_values(jsonb)', 'millrace.done_value(jsonb, jsonb)',
      'millrace.done_before(int8, int4, int4)', 'millrace.deciding_attempts(int4, text[])',
      'millrace.status_states(int4, text[])',
      'millrace.status_path(text, text, text, int4, int4, text)',
      'millrace.show_due(int4, int4)', 'millrace.shown_in_backoff(int4, text[])',
      'millrace.write_status_since(millrace.pipelines)',
      'millrace.history_of_written(millrace.pipelines)',
      'millrace.pass_over_written(millrace.pipelines, text, text, text, text)',
      'millrace.taking_of_told(millrace.pipelines)',
      'millrace.intake_of_retries(millrace.pipelines, text)',
      'millrace.write_status_intake(millrace.pipelines)',
      'millrace.write_status_triggers(millrace.pipelines)', 'millrace.sweep_fan_out(int8)',
      'millrace.collect_reported(int4)', 'millrace.prioritise_one(int8, int4)',
      'millrace.prioritise(int8, int4)', 'millrace.switch(text, text, bool, int8)',
      'millrace.pause(text, text)', 'millrace.switch_on(text, text, int8)',
      'millrace.unpause(text, text)', 'millrace.states_of_bypassed(millrace.stages, text[])',
      'millrace.rows_gone(int4, text[])',
      'millrace.start_bypassed(millrace.stages, text[], bool, timestamptz)',
      'millrace.forget_bypassed(int4, text[])',
      'millrace.take_up_portion(millrace.stages, text[], int4, timestamptz)',
      'millrace.check_take_up(millrace.stages, int4)',
      'millrace.take_up_rows(millrace.stages, int4)', 'millrace.take_up(text, text, int4)',
      'millrace.forget_worked(int8[])', 'millrace.act_on_bypass(millrace.caller, jsonb, int8)',
      'millrace.throttled(jsonb, jsonb)', 'millrace.check_throttle(jsonb)',
      'millrace.check_throttle_end(timestamptz, text)', 'millrace.set_limits(int4, jsonb)',
      'millrace.throttle_stage(millrace.stages, jsonb, timestamptz, text, int8)',
      'millrace.unthrottle_stage(int4)',
      'millrace.throttle(text, text, jsonb, timestamptz, text)',
      'millrace.unthrottle(text, text)', 'millrace.end_throttles()',
      'millrace.keep_throttles(int4)', 'millrace.check_trace(jsonb)',
      'millrace.save_trace(int4, jsonb)', 'millrace.write_traces(millrace.pipelines, text)',
      'millrace.write_trace_dispatch()', 'millrace.check_unchanged(jsonb, jsonb)',
      'millrace.save_unchanged(int4, int4, jsonb)',
      'millrace.digest_at(int4, jsonb, jsonpath)',
      'millrace.keep_inputs(millrace.stages, json)', 'millrace.inputs_now(int4, int8[])',
      'millrace.former_results(int4, int8[])',
      'millrace.begin_unless_unchanged(int4, int8[], bool)'
    ]::text[]) s
    where to_regprocedure(s) is not null);
  v_relations oid[] := array(
    select to_regclass(s)
    from unnest(array[
      'millrace.log', 'millrace.settings', 'millrace.pipelines', 'millrace.stages',
      'millrace.versions', 'millrace.version_stages', 'millrace.runs', 'millrace.run_metadata',
      'millrace.dropped_metadata', 'millrace.attempts', 'millrace.workers', 'millrace.claims',
      'millrace.wake_ups', 'millrace.fan_outs', 'millrace.fan_progress',
      'millrace.former_costs', 'millrace.child_tallies', 'millrace.posts', 'millrace.limiters',
      'millrace.in_flight', 'millrace.concurrency_groups', 'millrace.arrivals',
      'millrace.cut_overs', 'millrace.turns', 'public.millrace_decisions', 'millrace.alerts',
      'millrace.quota_uses', 'millrace.releases', 'millrace.status_values',
      'millrace.version_moves', 'millrace.begun_rows', 'millrace.due_progress',
      'millrace.adoptions', 'millrace.adopted_values', 'millrace.pulses', 'millrace.minutes',
      'millrace.hours', 'millrace.totals', 'millrace.run_ages', 'millrace.check_progress',
      'millrace.prune_progress', 'millrace.operators', 'millrace.journal', 'millrace.bulks',
      'millrace.bulk_faults', 'millrace.throttles', 'millrace.silences',
      'millrace.alert_rules', 'millrace.rule_states', 'millrace.rule_alerts',
      'millrace.alert_channels', 'millrace.alert_messages', 'millrace.back_pressures',
      'millrace.shared_limits', 'millrace.limited_stages', 'millrace.limit_uses',
      'millrace.limit_refusals', 'millrace.bypasses', 'millrace.bypassed',
      'millrace.row_costs', 'millrace.limit_keys', 'millrace.former_runs', 'millrace.work',
      'millrace.change', 'millrace.ready', 'millrace.cancelled', 'millrace.claimed',
      'millrace.built', 'millrace.written', 'millrace.call', 'millrace.payer',
      'millrace.caller', 'millrace.done_attempts', 'millrace.forgers',
      'millrace.metadata_faults', 'millrace.failed_runs', 'millrace.dead_letters',
      'millrace.dead_letter_counts', 'millrace.run_faults', 'millrace.attempt_faults',
      'millrace.job_faults', 'millrace.stage_faults', 'millrace.schedules',
      'millrace.queue_depth', 'millrace.stage_health', 'millrace.job_outcomes',
      'millrace.agent_log', 'millrace.agent_executions', 'millrace.all_alerts',
      'millrace.deliveries', 'millrace.pressure_faults', 'millrace.limit_faults',
      'millrace.cut_over_report', 'millrace.ending_faults', 'millrace.fan_out_faults',
      'millrace.sum_faults', 'millrace.told_figures', 'millrace.figure_faults',
      'millrace.hour_faults', 'millrace.learned_limits', 'millrace.operations',
      'millrace.quotas', 'millrace.retained_tables', 'millrace.retention', 'millrace.run_slas',
      'millrace.shared_limit_faults', 'millrace.shared_limit_state', 'millrace.status_moves',
      'millrace.paused', 'millrace.bypass_faults', 'millrace.unchanged_faults'
    ]::text[]) s
    where to_regclass(s) is not null);
  v_enums oid[] := array(
    select to_regtype(s)
    from unnest(array[
      'millrace.run_status', 'millrace.attempt_state'
    ]::text[]) s
    where to_regtype(s) is not null);
  v_types oid[];
  v_until timestamptz;
  v_table record;
  v_live text;
  v_others text[];
  v_count bigint;
  v_name text;
begin
  if to_regprocedure('millrace.engine()') is null then
    raise exception 'there is no Millrace in this database'
      using errcode = 'MR003', hint = 'Nothing has been removed.';
  end if;

  v_give_up := clock_timestamp() + coalesce((
    select s.value
    from millrace.settings s
    where s.name = 'upgrade_patience'), '15 seconds')::interval;
  -- As an upgrade does, it takes all locks within 800 ms or lets all go and tries again.
  loop
    begin
      v_until := clock_timestamp() + interval '800 milliseconds';
      for v_table in
        select t.name
        from (
          select 1 as place, 'millrace.workers' as name
          union all
          select distinct 2, g.tgrelid::regclass::text
          from pg_trigger g
          join pg_proc f on f.oid = g.tgfoid
          join pg_class c on c.oid = g.tgrelid
          where f.pronamespace = 'millrace'::regnamespace
            and c.oid <> all (v_relations)
          union all
          values (3, 'millrace.runs'), (4, 'millrace.attempts'), (5, 'millrace.claims')
          union all
          select 6, c.oid::regclass::text
          from pg_class c
          where c.oid = any (v_relations)
            and c.relkind = 'r'
            and c.relname <> all (array['workers', 'runs', 'attempts', 'claims'])
        ) t
        order by t.place, t.name
      loop
        perform set_config('lock_timeout',
          greatest(1, ceil(extract(epoch from v_until - clock_timestamp()) * 1000))::int || 'ms',
          true);
        execute format('lock table %s in access exclusive mode', v_table.name);
      end loop;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() >= v_give_up then
        raise exception
          'the database is busy, try again: somebody holds table %. Millrace stays as it was',
          v_table.name
          using errcode = 'lock_not_available',
            hint = 'Run it when less is going on, or let it wait longer: update millrace.settings '
              'set value = ''5 minutes'' where name = ''upgrade_patience''.';
      end if;
      perform pg_sleep(0.05 + random() * 0.2);
    end;
  end loop;
  perform set_config('lock_timeout', '3s', true);

  select string_agg(format('%s of %s', l.runs, l.name), ', ' order by l.name)
  into v_live
  from (
    select p.name, count(*) as runs
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.status = 'running'
    group by p.name
  ) l;
  if v_live is not null then
    raise exception 'runs are live: %', v_live
      using errcode = 'MR004',
        hint = 'Let them end, or cancel them: select millrace.cancel(id) from millrace.runs where '
          'status = ''running''. Nothing has been removed.';
  end if;

  -- What attach() has written belongs to it as well.
  v_functions := v_functions || array(
    select f.oid
    from pg_proc f
    where f.pronamespace = 'millrace'::regnamespace
      and (f.proname = any (array[
      'lock_entities', 'rows_of_entities', 'sizes_of_entities', 'asked_of_entities',
      'metadata_of_entities', 'project_entities', 'quota_keys', 'keys_of_entities',
      'traces_of_entities'
    ]::text[])
        or exists (
          select
          from millrace.pipelines p
          where f.proname ^@ (p.name || '__'))));
  v_types := array(
    select t.oid
    from pg_type t
    where t.typrelid = any (v_relations)
      or t.oid = any (v_enums)
      or t.typelem = any (v_enums)
      or t.typelem in (
        select e.oid
        from pg_type e
        where e.typrelid = any (v_relations)));
  for v_table in
    select g.tgname, g.tgrelid::regclass as name
    from pg_trigger g
    where g.tgfoid = any (v_functions)
      and g.tgrelid <> all (v_relations)
  loop
    execute format('drop trigger %I on %s', v_table.tgname, v_table.name);
  end loop;

  v_others := array(
    -- What somebody keeps in the engine's schemas.
    select pg_describe_object('pg_proc'::regclass, f.oid, 0)
    from pg_proc f
    join pg_namespace n on n.oid = f.pronamespace
    where n.nspname = any (array['millrace', 'millrace_evidence']::text[])
      and f.oid <> all (v_functions)
      -- A range type's constructors go by the name of their type.
      and not exists (
        select
        from pg_depend d
        where d.classid = 'pg_proc'::regclass
          and d.objid = f.oid
          and d.deptype = 'i')
    union
    select pg_describe_object('pg_class'::regclass, c.oid, 0)
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any (array['millrace', 'millrace_evidence']::text[])
      and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c', 'S')
      and c.oid <> all (v_relations)
      -- The sequence of an identity column goes with its table.
      and not exists (
        select
        from pg_depend d
        where d.classid = 'pg_class'::regclass
          and d.objid = c.oid
          and d.refobjid = any (v_relations)
          and d.deptype in ('i', 'a'))
    union
    select pg_describe_object('pg_collation'::regclass, o.oid, 0)
    from pg_collation o
    join pg_namespace n on n.oid = o.collnamespace
    where n.nspname = any (array['millrace', 'millrace_evidence']::text[])
    union
    -- What somebody hung on the engine's tables.
    select pg_describe_object('pg_trigger'::regclass, g.oid, 0)
    from pg_trigger g
    where g.tgrelid = any (v_relations)
      and not g.tgisinternal
      and g.tgfoid <> all (v_functions)
    union
    select pg_describe_object('pg_publication_rel'::regclass, b.oid, 0)
    from pg_publication_rel b
    where b.prrelid = any (v_relations)
    union
    select pg_describe_object('pg_type'::regclass, t.oid, 0)
    from pg_type t
    join pg_namespace n on n.oid = t.typnamespace
    where n.nspname = any (array['millrace', 'millrace_evidence']::text[])
      and t.typtype in ('d', 'e', 'r')
      and t.oid <> all (v_types)
    union
    -- What elsewhere depends on the engine's objects.
    select case when r.oid is null then pg_describe_object(d.classid, d.objid, d.objsubid)
      else pg_describe_object('pg_class'::regclass, r.ev_class, 0) end
    from pg_depend d
    left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass
      and r.oid = d.objid
    left join pg_attrdef a on d.classid = 'pg_attrdef'::regclass
      and a.oid = d.objid
    left join pg_constraint k on d.classid = 'pg_constraint'::regclass
      and k.oid = d.objid
    left join pg_trigger t on d.classid = 'pg_trigger'::regclass
      and t.oid = d.objid
    left join pg_index i on d.classid = 'pg_class'::regclass
      and i.indexrelid = d.objid
    left join pg_policy l on d.classid = 'pg_policy'::regclass
      and l.oid = d.objid
    where d.deptype = 'n'
      and (d.refclassid = 'pg_proc'::regclass and d.refobjid = any (v_functions)
        or d.refclassid = 'pg_class'::regclass and d.refobjid = any (v_relations)
        or d.refclassid = 'pg_type'::regclass and d.refobjid = any (v_types))
      and coalesce(
        r.ev_class, a.adrelid, k.conrelid, t.tgrelid, i.indrelid, l.polrelid, d.objid)
        <> all (v_relations || v_functions || v_types)
    order by 1);
  if cardinality(v_others) > 0 then
    raise exception 'others depend on Millrace, drop these first: %',
      array_to_string(v_others, ', ')
      using errcode = 'dependent_objects_still_exist',
        hint = 'They are not Millrace''s own. Nothing has been removed.';
  end if;

  -- Without pg_cron the jobs have gone with it.
  if to_regclass('cron.job') is not null then
    foreach v_name in array array[
      'millrace-prune-more', 'millrace-poll', 'millrace-bulks', 'millrace-sweep',
      'millrace-prune'
    ]::text[] loop
      if exists (select from cron.job j where j.jobname = v_name) then
        perform cron.unschedule(v_name);
      end if;
    end loop;
  end if;
  execute (
    select string_agg(format('drop function %s cascade;', f::regprocedure), '')
    from unnest(v_functions) f
    join pg_proc p on p.oid = f
    where p.pronamespace = 'public'::regnamespace);
  foreach v_name in array array['public.millrace_decisions']::text[] loop
    execute format('drop table if exists %s', v_name);
  end loop;
  foreach v_name in array array['millrace', 'millrace_evidence']::text[] loop
    execute format('drop schema %I cascade', v_name);
  end loop;
  perform pg_notify('pgrst', 'reload schema');
  raise notice 'Millrace is gone. The columns that it kept on your tables are still there, and so '
    'are the extensions pg_net, pg_cron and Vault and the secrets in Vault that are called '
    'millrace_….';
end
$uninstall$;
