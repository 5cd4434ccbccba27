-- A row for each value of a status column. A value that a definition drops stays, as retired.
-- adopted_as: the value that an adopted row with this value gets. begins: the stage that such a row
-- begins. before: the stages whose conditions tell whether the row brings their output along.
create table millrace.status_values (
  pipeline_id int not null references millrace.pipelines on delete cascade,
  value text not null,
  name text not null,
  description text not null,
  category text not null,
  is_terminal boolean not null,
  sort_order int not null,
  adopted_as text not null,
  begins text,
  before text[] not null,
  retired boolean not null,
  primary key (pipeline_id, value)
);

-- A row for each legal move of a status column: who may write it, and what a person's write means.
-- at_stage_id: the stage that must be live; null for any. stage_id: the stage that the move begins
-- or answers. declared: the definition lists the move, which is legal wherever the run ended.
-- retired: only histories have the move.
create table millrace.version_moves (
  id int generated always as identity primary key,
  version_id int not null references millrace.versions on delete cascade,
  from_value text,
  to_value text not null,
  by text not null,
  means text not null,
  at_stage_id int,
  stage_id int,
  declared boolean not null,
  drawn boolean not null,
  retired boolean not null default false
);
create unique index version_moves_key on millrace.version_moves
  (version_id, from_value, to_value, by, means, at_stage_id, stage_id) nulls not distinct;
