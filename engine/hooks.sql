-- Hooks: what the kernel asks of the modules, and when
--
-- Each takes a set. The build puts the statements of engine/modules/*/hooks.plpgsql in their
-- place, in the order of engine/modules.json, which is the lock order. The kernel looks first
-- whether a stage or a pipeline asks for anything of the kind: a plain one pays one test a batch.

-- A start: runs are made, a stage begins

-- Reads what the rows of new runs bring along, in their order: metadata, and the stages whose
-- results they have.
create function millrace.hook_before_runs(
  p_pipeline millrace.pipelines, p_entity_ids text[], p_values millrace.row_values,
  out metadata_ids bigint[], out given text[]
);

-- Gives new runs that start at a stage the results of the stages beside and before it. Returns the
-- runs that are still to begin it. p_done_before: a row without any run has been through the stages
-- before that one.
create function millrace.hook_runs_made(
  p_stage millrace.version_stages, p_run_ids bigint[], p_done_before int
) returns bigint[]
as $$
-- the modules' runs_made
return p_run_ids;
$$;

-- Names who pays for somebody's start of these runs.
create function millrace.hook_before_start(p_pipeline millrace.pipelines, p_run_ids bigint[]);

-- Charges a start that has queued something in these runs since it began.
create function millrace.hook_started(p_run_ids bigint[], p_began_at timestamptz);

-- Refuses to begin a stage by name, or in the middle, in runs that lack what it needs.
create function millrace.hook_before_stage(p_run_ids bigint[], p_stage_id int);

-- Begins a stage with conditions whose needs are done. Returns the stages with work.
-- p_by_name: overrules the conditions.
-- p_is_projected: the rows show the stage as queued already.
create function millrace.hook_begin(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean, p_is_projected boolean default false
) returns int[];

-- Begins a stage by the module of its kind; queues it if there is none. Returns the stages with
-- work.
-- p_is_projected: the rows show the stage as queued already.
create function millrace.hook_begin_kind(
  p_kind text, p_stage_id int, p_run_ids bigint[], p_is_projected boolean default false
) returns int[]
as $$
-- the modules' begin_kind
perform millrace.queue_attempts(p_stage_id, p_run_ids);
if not p_is_projected then
  perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
end if;
return array[p_stage_id];
$$;

-- The queue and its claims

-- Says whether the limits of a stage let anything be claimed now, or what is in a group.
create function millrace.hook_has_room(p_stage millrace.stages, p_group text default null)
returns boolean;

-- Claims as far as the limits of a stage and the quotas of its tenants allow. taken: how many, with
-- what a quota put back; wait_ms: when to ask again where nothing is left.
create function millrace.hook_claim(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int, p_may_wait boolean,
  out token uuid, out entity_ids text[], out items millrace.claimed[], out taken int,
  out wait_ms int
);

-- Claims group by group, after the limits of the stage have allowed p_limit.
create function millrace.hook_claim_by_group(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int,
  out token uuid, out attempt_ids bigint[], out wait_ms int
);

-- Returns the tokens of attempts that a claim put back to the limits of their stage.
create function millrace.hook_put_back(
  p_stage millrace.stages, p_kept bigint[], p_back bigint[]
);

-- A report

-- Completes a batch at a stage that may end runs. Returns the stages that got work.
create function millrace.hook_complete(p_stage_id int, p_items millrace.work[])
returns int[];

-- Says whether the worker of a map stage has yet to hand over its last items.
create function millrace.hook_unspawned(p_attempt millrace.attempts) returns boolean;

-- Begins the followers of a stage that is done. Without a stage, begins all that may begin. Returns
-- the stages with work.
-- p_all: every follower, not just those that advance() skipped.
create function millrace.hook_advance(
  p_stage_id int, p_run_ids bigint[], p_all boolean default false
) returns int[];

-- Notes what ended attempts have cost.
create function millrace.hook_spent(p_stage millrace.stages, p_items millrace.work[]);

-- Follows a worker's report that is recorded.
create function millrace.hook_reported(p_stage millrace.stages, p_verdicts json);

-- Learns from a worker that leaves what a row costs its isolate.
create function millrace.hook_left(p_stage_id int, p_row_cpu_ms real, p_row_bytes bigint);

-- Learns that from hosts that ended without a word.
create function millrace.hook_hosts_lost(p_stage_id int, p_hosts uuid[]);

-- Returns what a row of a stage takes of its isolate, in milliseconds of CPU; null: not known yet.
create function millrace.hook_row_cpu_ms(p_stage_id int) returns real;

-- Follows a change of what is shown of entities: p_entity_ids, or those of p_changes.
create function millrace.hook_entities_changed(
  p_pipeline_id int, p_entity_ids text[], p_changes millrace.change[] default null
);

-- An end, a retry, a start over

-- Follows locked runs that leave stages, or begin them again.
-- p_stage_ids: null for all stages.
-- p_how: cancelled: their attempts ended; superseded: they no longer count; retried.
create function millrace.hook_stages_left(p_run_ids bigint[], p_stage_ids int[], p_how text);

-- Returns those of completed runs that have left a stage out.
create function millrace.hook_incomplete(p_run_ids bigint[]) returns bigint[];

-- Deletion and the sweep

-- Keeps what is to outlive locked runs that are deleted, maybe since they are too old, and deletes
-- what hangs on them. Their attempts are locked and still there.
create function millrace.hook_before_deletion(p_run_ids bigint[], p_too_old boolean);

-- Deletes what is kept about the rows themselves, which are gone.
create function millrace.hook_rows_gone(p_pipeline_id int, p_entity_ids text[]);

-- Lists the parts of the sweep with something to do, by index probes alone. priority: 1 to 9 in a
-- pipeline, 11 to 29 for runs, 31 to 40 for what judges or tidies up.
create function millrace.hook_to_sweep()
returns table (priority int, part text, id bigint)
set millrace.plan = by_index
as $$
declare
  -- A minute has begun since rules were judged last.
  v_new_minute boolean := exists (
    select from millrace.settings s
    where s.name = 'rules_judged_at'
      and s.value <> to_char(v_now at time zone 'utc', 'YYYY-MM-DD HH24:MI'));

return query
select k.priority, k.part, p.id::bigint
from millrace.pipelines p
cross join lateral (values
  -- the modules' to_sweep_of_pipelines
  (0, null, false)) k(priority, part, wanted)
where k.wanted;
return query
select k.priority, k.part, null::bigint
from (values
  -- the modules' to_sweep
  (0, null, false)) k(priority, part, wanted)
where k.wanted;
-- the modules' to_sweep_each
$$;

-- Does one portion of a part of the sweep. more: there may be more to do now.
create function millrace.hook_sweep(
  p_part text, p_id bigint, p_most int, out done int, out more boolean
)
as $$
case p_part
  -- the modules' sweep
end case;
done := coalesce(done, 0);
more := coalesce(more, done >= p_most);
$$;

-- Questions of the module health

-- Finds breaches of the modules' invariants in the runs between two ids.
-- p_whole: also those that belong to no run, and those that a slice has no time for.
create function millrace.hook_faults(
  p_after bigint default 0, p_until bigint default 9223372036854775807,
  p_whole boolean default true
) returns setof millrace.fault
stable;

-- Tells how the modules' parts of the engine are, with the remedy.
create function millrace.hook_findings() returns setof millrace.finding
stable;
