-- Hooks: what the kernel asks of the modules, and when
--
-- Each takes a set. The build puts the statements of engine/modules/*/hooks.plpgsql at their place,
-- in the order of engine/modules.json, in which they take their locks. The kernel looks first
-- whether a stage or a pipeline asks for anything of the kind: a plain one pays one test a batch.

-- Reads what the rows of new runs bring along, in their order: metadata, and the stages whose
-- results they have.
create function millrace.hook_before_runs(
  p_pipeline millrace.pipelines, p_entity_ids text[], p_values millrace.row_values,
  out metadata_ids bigint[], out given text[]
);

-- Completes new runs before anything is queued. p_done_before: a row without any run has been
-- through the stages before that one.
create function millrace.hook_runs_made(
  p_pipeline millrace.pipelines, p_run_ids bigint[], p_done_before int
);

-- Gives new runs that start at a stage the results of the stages beside and before it.
create function millrace.hook_runs_at(
  p_stage millrace.version_stages, p_run_ids bigint[]
);

-- Raises MR005 where a stage cannot begin.
create function millrace.hook_before_begin(p_run_ids bigint[], p_stage_id int);

-- Begins a stage whose needs are done, where more than these decides. Returns the stages with work.
-- p_shown: the rows show it as queued already.
create function millrace.hook_begin(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean, p_shown boolean
) returns int[]
as $$
begin
  -- the modules' begin
  return '{}';
end
$$;

-- Begins a stage that waits for something else than a worker. Returns the stages with work.
create function millrace.hook_begin_kind(
  p_kind text, p_stage_id int, p_run_ids bigint[], p_shown boolean
) returns int[]
as $$
begin
  -- the modules' begin_kind
  return '{}';
end
$$;

-- Skips the needs of a stage whose results the rows brought along. Returns the runs that are still
-- to begin it.
create function millrace.hook_skip_given(p_run_ids bigint[], p_stage_id int)
returns bigint[]
as $$
begin
  -- the modules' skip_given
  return p_run_ids;
end
$$;

-- Prepares runs for somebody's start.
create function millrace.hook_before_start(
  p_pipeline millrace.pipelines, p_run_ids bigint[]
);

-- Charges a start that is queued.
create function millrace.hook_started(p_run_ids bigint[], p_began_at timestamptz);

-- Forgets what locked runs had of stages that start over.
create function millrace.hook_started_over(p_run_ids bigint[], p_stage_ids int[]);

-- Names the groups of new attempts, in the order of the runs. p_keys: the keys of their rows, where
-- known.
create function millrace.hook_groups(
  p_stage millrace.stages, p_run_ids bigint[], p_keys text[]
) returns text[]
as $$
begin
  -- the modules' groups
  return null;
end
$$;

-- Sorts queued attempts into groups.
create function millrace.hook_queued(p_stage_id int, p_run_ids bigint[]);

-- Says whether the limits of a stage let anything be claimed now.
create function millrace.hook_has_room(p_stage millrace.stages) returns boolean
as $$
begin
  -- the modules' has_room
  return true;
end
$$;

-- Says whether the limits let an attempt of this group be claimed now.
create function millrace.hook_has_room_for(p_stage millrace.stages, p_group text)
returns boolean
as $$
begin
  -- the modules' has_room_for
  return true;
end
$$;

-- Claims at a stage with limits. wait_ms: when to ask again where it takes nothing.
create function millrace.hook_claim(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int, p_may_wait boolean,
  out token uuid, out attempt_ids bigint[], out entity_ids text[], out items millrace.claimed[],
  out wait_ms int
);

-- Claims at a stage with groups, turn by turn.
create function millrace.hook_claim_groups(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int,
  out token uuid, out attempt_ids bigint[], out wait_ms int
);

-- Takes of the stage's limits what a claim needs.
create function millrace.hook_claimed(
  p_stage millrace.stages, p_attempt_ids bigint[], p_token uuid, p_worker_id uuid
);

-- Puts back what a claim may not have after all, and returns the rest.
create function millrace.hook_hold_back(
  p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[]
) returns millrace.claimed[]
as $$
begin
  -- the modules' hold_back
  return null;
end
$$;

-- Gives back to the limits what a batch has no room for.
create function millrace.hook_given_back(
  p_stage millrace.stages, p_kept bigint[], p_back bigint[]
);

-- Notes what the attempts of a batch are given to work on.
create function millrace.hook_handed_out(p_stage millrace.stages, p_batch json);

-- Lists the fan-outs whose children have reported.
create function millrace.hook_to_collect() returns bigint[]
as $$
begin
  -- the modules' to_collect
  return '{}';
end
$$;

-- Completes a batch at a stage that may end runs. Returns the stages that got work.
create function millrace.hook_complete(p_stage_id int, p_items millrace.work[])
returns int[]
as $$
begin
  -- the modules' complete
  return millrace.complete(p_stage_id, p_items);
end
$$;

-- Goes on after a stage that is done to what advance() does not queue. Returns the stages that got
-- work.
create function millrace.hook_followed(p_stage_id int, p_run_ids bigint[]) returns int[]
as $$
begin
  -- the modules' followed
  return '{}';
end
$$;

-- Notes what ended attempts have cost.
create function millrace.hook_spent(p_stage millrace.stages, p_items millrace.work[]);

-- Lets runs go on without a stage that failed. Returns the stages that got work.
create function millrace.hook_continue_without(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
begin
  -- the modules' continue_without
  return '{}';
end
$$;

-- Gives up what hangs on attempts that were cancelled or failed for good, at all or some stages.
create function millrace.hook_given_up(p_run_ids bigint[], p_stage_ids int[]);

-- Follows a worker's report that is recorded.
create function millrace.hook_reported(p_stage millrace.stages, p_verdicts json);

-- Begins a stage anew where its kind decides how. Returns the stages with work; null where it is to
-- be queued.
create function millrace.hook_retry_kind(p_kind text, p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
begin
  -- the modules' retry_kind
  return null;
end
$$;

-- Begins what may begin in new runs, or in those that go on. Returns the stages with work.
create function millrace.hook_continue(p_run_ids bigint[]) returns int[]
as $$
begin
  -- the modules' continue
  return '{}';
end
$$;

-- Polls for jobs from now on.
create function millrace.hook_polled();

-- Learns what a row costs an isolate, from a worker that leaves.
create function millrace.hook_left(p_stage_id int, p_row_cpu_ms real, p_row_bytes bigint);

-- Learns from isolates that ended without a word.
create function millrace.hook_lost(p_stage_id int, p_hosts uuid[]);

-- Keeps what is to outlive locked runs that are deleted.
create function millrace.hook_before_deletion(p_run_ids bigint[]);

-- Deletes what hangs on locked runs.
create function millrace.hook_deleted(p_run_ids bigint[]);

-- Forgets what is known of rows that are deleted.
create function millrace.hook_forgotten(p_pipeline_id int, p_entity_ids text[]);

-- Lists the parts of the sweep with something to do in a pipeline, by index probes alone. place: 1
-- to 9.
create function millrace.hook_to_sweep_of_pipelines()
returns table (place int, part text, id bigint)
volatile
set millrace.plan = by_index
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return query
    select k.place, k.part, p.id::bigint
    from millrace.pipelines p
    cross join lateral (values
      -- the modules' to_sweep_of_pipelines
      (0, null, false)) k(place, part, wanted)
    where k.wanted;
end
$$;

-- Lists the other parts of the sweep with something to do. place: 11 to 29 for runs, 31 to 40 for
-- what judges or tidies up.
create function millrace.hook_to_sweep()
returns table (place int, part text, id bigint)
volatile
set millrace.plan = by_index
as $$
declare
  v_now timestamptz := millrace.now();
  v_new_minute boolean := millrace.is_new_minute();
begin
  return query
    select k.place, k.part, null::bigint
    from (values
      -- the modules' to_sweep
      (0, null, false)) k(place, part, wanted)
    where k.wanted;
  -- the modules' to_sweep_each
end
$$;

-- Does one portion of a part of the sweep. more: there may be more to do now.
create function millrace.hook_sweep(
  p_part text, p_id bigint, p_most int, out done int, out more boolean
)
as $$
begin
  case p_part
    -- the modules' sweep
  end case;
  done := coalesce(done, 0);
  more := coalesce(more, done >= p_most);
end
$$;

-- Finds breaches of the modules' invariants.
create function millrace.hook_faults() returns setof millrace.fault
stable;

-- Finds breaches in the runs between two ids.
create function millrace.hook_faults_between(p_after bigint, p_until bigint)
returns setof millrace.fault
stable;

-- Tells how the modules' parts of the engine are, with the remedy.
create function millrace.hook_findings() returns setof millrace.finding
stable;

-- Follows what has changed in the stages of a pipeline.
create function millrace.hook_stages_saved(p_pipeline_id int);

-- Saves what a definition asks of the modules.
create function millrace.hook_defined(p_pipeline_id int, p_definition jsonb);

-- Keeps what is to outlive locked runs that are too old.
create function millrace.hook_before_pruning(p_run_ids bigint[]);

-- Deletes what there is little of, as a round of pruning begins.
create function millrace.hook_begin_pruning();

-- Deletes a portion of what is older than this and belongs to no run. True: there may be more.
create function millrace.hook_prune(p_before timestamptz) returns boolean
as $$
begin
  -- the modules' prune
  return false;
end
$$;

-- What attach() has written for a pipeline
--
-- lock_entities(), rows_of_entities() and project_entities(), which every batch calls, branch for
-- each pipeline; the others call by name, planned at each call.

-- Reads the stored bytes of what rows_of_entities() would build.
create function millrace.sizes_of_entities(p_pipeline_id int, p_ids text[]) returns bigint[]
as $$
declare
  v_sizes bigint[];
begin
  execute format('select millrace.%I($1)', (
    select p.name from millrace.pipelines p where p.id = p_pipeline_id) || '__sizes')
  into v_sizes
  using p_ids;
  return v_sizes;
end
$$;

-- Reads what the conditions of given stages read of entities, in the order of their keys.
create function millrace.asked_of_entities(p_pipeline_id int, p_ids text[], p_each bigint)
returns jsonb[]
as $$
declare
  v_asked jsonb[];
begin
  execute format('select millrace.%I($1, $2)', (
    select p.name from millrace.pipelines p where p.id = p_pipeline_id) || '__asked')
  into v_asked
  using p_ids, p_each;
  return v_asked;
end
$$;

-- Reads what the columns that a definition names hold, in the order of the keys; null where it
-- names none.
create function millrace.values_of_entities(
  p_pipeline_id int, p_ids text[], p_new boolean, p_stage text
) returns millrace.row_values
as $$
declare
  v_read regproc := (
    select to_regproc(format('millrace.%I', p.name || '__values'))
    from millrace.pipelines p
    where p.id = p_pipeline_id);
  v_values millrace.row_values;
begin
  if v_read is not null then
    execute format('select v.* from %s($1, $2, $3) v', v_read)
    into v_values
    using p_ids, p_new, p_stage;
  end if;
  return v_values;
end
$$;
