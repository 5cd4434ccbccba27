-- The projection `status`: one column of the entity shows where its run stands.
--
-- Values are kept as text, whatever the column's type. What a stage shows is a setting of today;
-- which moves are legal follows from the graph too, so moves belong to a version.

alter table millrace.pipelines
  drop constraint pipelines_projection_known,
  add constraint pipelines_projection_known
    check (projection in ('columns', 'status', 'none')),
  add column status jsonb;
comment on column millrace.pipelines.status is
  'What the definition says of the status column; null for another projection.';

alter table millrace.stages
  add column shows jsonb;
comment on column millrace.stages.shows is
  'What the status column shows of the stage, with the values by which its layer is entered and '
  'left; null for another projection.';

alter table millrace.runs
  add column began_from text;
comment on column millrace.runs.began_from is
  'The value of the status column at which a person began the run; null elsewhere. Taking the '
  'question back leads to it again.';

create table millrace.status_values (
  pipeline_id int not null
    constraint status_values_pipeline_fkey references millrace.pipelines on delete cascade,
  value text not null,
  name text not null,
  description text not null,
  category text not null,
  is_terminal boolean not null,
  sort_order int not null,
  retired boolean not null default false,
  constraint status_values_pkey primary key (pipeline_id, value)
);
comment on table millrace.status_values is
  'What the values of a status column mean, in the order of the present chain. One that a '
  'definition drops stays, retired.';

create table millrace.version_moves (
  version_id int not null
    constraint version_moves_version_fkey references millrace.versions on delete cascade,
  from_value text,
  to_value text not null,
  by text not null
    constraint version_moves_by_known check (by in ('engine', 'person', 'call')),
  means text not null,
  at_stage_id int,
  stage_id int,
  declared boolean not null default false,
  drawn boolean not null default false,
  retired boolean not null default false
);
create unique index version_moves_key on millrace.version_moves
  (version_id, from_value, to_value, by, means, at_stage_id, stage_id) nulls not distinct;
comment on table millrace.version_moves is
  'Which value of a status column may follow which. by: the engine as work goes on, a person who '
  'writes it, or the engine after a person''s call such as start(). from_value is null for a row '
  'that is new or has no value yet. means says what a person''s write does; at_stage_id is the '
  'stage that must be live for it, stage_id the one that it begins or answers. declared: the '
  'definition lists it, so that it is legal wherever the run came to its end. retired: no longer, '
  'but histories may have it.';
