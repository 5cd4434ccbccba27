-- Hooks: functions that the kernel calls, and whose bodies the modules write
--
-- A hook takes a whole set of runs, rows or items. The build puts the statements of
-- engine/modules/*/hooks.plpgsql into its body, in the order of engine/modules.json. Most hooks are
-- called only where a flag of the stage or of the pipeline asks for them. A plain stage therefore
-- pays one test a batch.

-- A start: runs are made, a stage begins

-- Reads what the rows of new runs bring along. Each list is in the order of p_entity_ids.
-- p_values: the values of the rows' columns, from values_of_entities().
-- metadata_ids: the rows of run_metadata to which the metadata was copied.
-- given: the stages whose results a row has already, as the text of an array; null for a row that
-- had a run before.
create function millrace.hook_before_runs(
  p_pipeline millrace.pipelines, p_entity_ids text[], p_values millrace.row_values,
  out metadata_ids bigint[], out given text[]
);

-- Gives new runs that start at a stage the results of the stages before and beside it. Returns the
-- runs in which the stage has yet to begin.
-- p_done_before: a stage. A row whose first run is new has been through all stages before it. Null:
-- the row has been through none.
create function millrace.hook_runs_made(
  p_stage millrace.version_stages, p_run_ids bigint[], p_done_before int
) returns bigint[]
as $$
-- the modules' runs_made
return p_run_ids;
$$;

-- Writes onto the runs of a start which pipeline's quota they count against, and the key of the
-- tenant.
create function millrace.hook_before_start(p_pipeline millrace.pipelines, p_run_ids bigint[]);

-- Marks the attempts that a start has queued in these runs, and in their new children, for the
-- quota of their tenant.
-- p_began_at: when the start began.
create function millrace.hook_started(p_run_ids bigint[], p_began_at timestamptz);

-- Raises MR005 where a run lacks a result that the stage needs. Starts call it before they begin
-- the stage in a live run, or in the middle of the graph.
create function millrace.hook_before_stage(p_run_ids bigint[], p_stage_id int);

-- Begins a stage that is not unconditional, in runs where its needs are done. Skips it where its
-- conditions say so, else calls hook_begin_kind(). Returns the stages that got work.
-- p_by_name: a start names the stage. Its conditions, and a result that the row brought along, then
-- do not skip it.
-- p_is_projected: the rows show the stage as queued already.
create function millrace.hook_begin(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean, p_is_projected boolean default false
) returns int[];

-- Begins a stage by the module of its kind, or queues it where no module has the kind. Returns the
-- stages that got work.
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

-- Tells whether the limits of a stage let a claim take anything now.
-- p_group: asks for the attempts of one concurrency group; null asks for the whole stage.
create function millrace.hook_has_room(p_stage millrace.stages, p_group text default null)
returns boolean;

-- Claims as many attempts as the limits of a stage and the quotas of its tenants allow.
-- p_may_wait: the claim may wait for the locks of the limits.
-- taken: how many attempts the claim took, those included that a quota put back.
-- wait_ms: after how many milliseconds to ask again; null where waiting does not help.
create function millrace.hook_claim(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int, p_may_wait boolean,
  out token uuid, out entity_ids text[], out items millrace.claimed[], out taken int,
  out wait_ms int
);

-- Claims attempts of a stage with concurrency groups, up to p_limit, each group in turn.
-- wait_ms: after how many milliseconds to ask again; null where waiting does not help.
create function millrace.hook_claim_by_group(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int,
  out token uuid, out attempt_ids bigint[], out wait_ms int
);

-- Gives the limits of a stage back what a claim took from them for attempts that it put back.
-- p_kept: the attempts that stay in the batch.
-- p_back: the attempts that were put back.
create function millrace.hook_put_back(
  p_stage millrace.stages, p_kept bigint[], p_back bigint[]
);

-- A report

-- Completes a batch of a stage, and ends the runs for which one of the stage's endings holds.
-- Returns the stages that got work.
create function millrace.hook_complete(p_stage_id int, p_items millrace.work[])
returns int[];

-- Tells whether the worker of a map stage has yet to send the last chunk of the attempt's items.
create function millrace.hook_unspawned(p_attempt millrace.attempts) returns boolean;

-- Begins the followers of a stage that is done. Returns the stages that got work.
-- p_stage_id: null begins all stages that may begin in the runs.
-- p_all: also the unconditional followers, which advance() begins where a stage completes.
create function millrace.hook_advance(
  p_stage_id int, p_run_ids bigint[], p_all boolean default false
) returns int[];

-- Records in quotas and shared limits what ended attempts have used.
create function millrace.hook_spent(p_stage millrace.stages, p_items millrace.work[]);

-- Acts on a worker's recorded report at an agent stage or a map stage.
-- p_verdicts: the answer's list of {attempt, verdict, reason}.
create function millrace.hook_reported(p_stage millrace.stages, p_verdicts json);

-- Saves what a leaving worker measured: how much CPU and memory a row takes of its isolate.
create function millrace.hook_left(p_stage_id int, p_row_cpu_ms real, p_row_bytes bigint);

-- Raises the estimate of a row's cost after isolates ended without a report.
-- p_hosts: the isolates whose leases expired.
create function millrace.hook_hosts_lost(p_stage_id int, p_hosts uuid[]);

-- Returns the milliseconds of CPU that a row of a stage takes of its isolate; null while unknown.
create function millrace.hook_row_cpu_ms(p_stage_id int) returns real;

-- Sends a message to the clients that watch a row, after the row's progress has changed.
-- p_entity_ids: the entities; null for those of p_changes.
create function millrace.hook_entities_changed(
  p_pipeline_id int, p_entity_ids text[], p_changes millrace.change[] default null
);

-- An end, a retry, a start over

-- Closes or reopens what modules keep for stages of locked runs that end, start over or are
-- retried.
-- p_stage_ids: null for all stages.
-- p_how: `cancelled`: their attempts have ended. `superseded`: the stages start over. `retried`:
-- the stages are about to be retried.
create function millrace.hook_stages_left(p_run_ids bigint[], p_stage_ids int[], p_how text);

-- Returns those of completed runs that have left a stage out.
create function millrace.hook_incomplete(p_run_ids bigint[]) returns bigint[];

-- Deletion and the sweep

-- Saves what is to outlive locked runs that are about to be deleted, and deletes what belongs to
-- them. Their attempts are locked and not deleted yet.
-- p_too_old: pruning deletes the runs, whose rows still exist.
create function millrace.hook_before_deletion(p_run_ids bigint[], p_too_old boolean);

-- Deletes what modules keep about entities whose rows were deleted.
create function millrace.hook_rows_gone(p_pipeline_id int, p_entity_ids text[]);

-- Lists the parts of the sweep that have work, by index probes alone.
-- priority: the lowest comes first. Parts of one pipeline have less than 10.
-- id: of the pipeline, or of the row that the part is about; null for none.
create function millrace.hook_to_sweep()
returns table (priority int, part text, id bigint)
set plan = by_index
as $$
  -- True in the first sweep of a minute: the rules have not been judged in it yet.
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

-- Does one portion of a part of the sweep.
-- p_id: the id that hook_to_sweep() lists beside the part.
-- p_most: how many rows the portion may have.
-- more: there may be more to do now.
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

-- Finds breaches of the modules' invariants in the runs with ids above p_after and up to p_until.
-- p_whole: also checks what belongs to no run, and what takes too long for a slice.
create function millrace.hook_faults(
  p_after bigint default 0, p_until bigint default 9223372036854775807,
  p_whole boolean default true
) returns setof millrace.fault
stable;

-- Returns what doctor() says of the modules: a line for each matter, with the remedy where it is
-- not ok.
create function millrace.hook_findings() returns setof millrace.finding
stable;
