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

-- Gives new runs that start at a stage the results of the stages beside and before it.
-- p_done_before: a row without any run has been through the stages before that one.
create function millrace.hook_runs_made(
  p_stage millrace.version_stages, p_run_ids bigint[], p_done_before int
);

-- Raises MR005 where a stage cannot begin. New runs skip its needs first whose results the rows
-- brought along. Returns the runs that are still to begin it.
create function millrace.hook_before_begin(p_run_ids bigint[], p_stage_id int, p_new boolean)
returns bigint[]
as $$
begin
  -- the modules' before_begin
  return p_run_ids;
end
$$;

-- Begins a stage whose needs are done, where a module decides more than that. p_kind: a kind of
-- stage that begins in its own way; p_again: for another try. Returns the stages with work; null
-- where the stage is to be queued. p_shown: the rows show it as queued already.
create function millrace.hook_begin(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean default false,
  p_shown boolean default false, p_kind text default null, p_again boolean default false
) returns int[]
as $$
begin
  -- the modules' begin
  return null;
end
$$;

-- Begins what advance() does not queue, in runs of which a stage has ended (p_after: completed or
-- failed), or without a stage in runs that are new or go on. Returns the stages with work.
create function millrace.hook_continue(
  p_run_ids bigint[], p_stage_id int default null, p_after text default null
) returns int[]
as $$
begin
  -- the modules' continue
  return '{}';
end
$$;

-- Prepares runs for somebody's start, and charges it once it is queued, since p_began_at.
create function millrace.hook_start(
  p_pipeline millrace.pipelines, p_run_ids bigint[], p_began_at timestamptz default null
);

-- Forgets what locked runs had of stages that start over.
create function millrace.hook_started_over(p_run_ids bigint[], p_stage_ids int[]);

-- Sorts queued attempts into groups; p_new: names those of attempts to come, in the order of the
-- runs. p_keys: the keys of their rows, where known.
create function millrace.hook_queued(
  p_stage_id int, p_run_ids bigint[], p_keys text[] default null, p_new boolean default false
) returns text[]
as $$
begin
  -- the modules' queued
  return null;
end
$$;

-- Says whether the limits of a stage let anything be claimed now, or what is in a group.
create function millrace.hook_has_room(p_stage millrace.stages, p_group text default null)
returns boolean
as $$
begin
  -- the modules' has_room
  return true;
end
$$;

-- Claims at a stage with limits. p_by_turns: group by group, once the limits have been asked.
-- wait_ms: when to ask again where it takes nothing.
create function millrace.hook_claim(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int, p_may_wait boolean,
  p_by_turns boolean default false, out token uuid, out attempt_ids bigint[],
  out entity_ids text[], out items millrace.claimed[], out wait_ms int
);

-- Takes of the stage's limits what a claim needs, or gives back what its batch has no room for.
create function millrace.hook_claimed(
  p_stage millrace.stages, p_attempt_ids bigint[], p_back bigint[] default null
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

-- Notes what ended attempts have cost.
create function millrace.hook_spent(p_stage millrace.stages, p_items millrace.work[]);

-- Gives up what hangs on attempts that were cancelled or failed for good, at all or some stages.
create function millrace.hook_given_up(p_run_ids bigint[], p_stage_ids int[]);

-- Follows a worker's report that is recorded.
create function millrace.hook_reported(p_stage millrace.stages, p_verdicts json);

-- Polls for jobs from now on.
create function millrace.hook_polled();

-- Learns what a row costs an isolate, from a worker that leaves or hosts that ended without a word.
create function millrace.hook_left(
  p_stage_id int, p_hosts uuid[], p_row_cpu_ms real default null, p_row_bytes bigint default null
);

-- Keeps what is to outlive locked runs that are deleted, maybe since they are too old.
create function millrace.hook_before_deletion(p_run_ids bigint[], p_too_old boolean);

-- Deletes what hangs on locked runs.
create function millrace.hook_deleted(p_run_ids bigint[]);

-- Forgets what is known of rows that are deleted.
create function millrace.hook_forgotten(p_pipeline_id int, p_entity_ids text[]);

-- Lists the parts of the sweep with something to do, by index probes alone. place: 1 to 9 in a
-- pipeline, 11 to 29 for runs, 31 to 40 for what judges or tidies up.
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
    select k.place, k.part, p.id::bigint
    from millrace.pipelines p
    cross join lateral (values
      -- the modules' to_sweep_of_pipelines
      (0, null, false)) k(place, part, wanted)
    where k.wanted;
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

-- Finds breaches of the modules' invariants, everywhere or in the runs between two ids.
create function millrace.hook_faults(p_after bigint default null, p_until bigint default null)
returns setof millrace.fault
stable
as $$
begin
  if p_until is null then
    -- the modules' faults
  else
    -- the modules' faults_between
  end if;
end
$$;

-- Tells how the modules' parts of the engine are, with the remedy.
create function millrace.hook_findings() returns setof millrace.finding
stable;

-- Saves what a definition asks of the modules.
create function millrace.hook_defined(p_pipeline_id int, p_definition jsonb);

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
