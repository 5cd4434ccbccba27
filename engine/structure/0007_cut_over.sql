create table millrace.cut_overs (
  pipeline_id int
    constraint cut_overs_pkey primary key
    constraint cut_overs_pipeline_fkey references millrace.pipelines on delete cascade,
  mode text not null default 'default'
    constraint cut_overs_mode_known check (mode in ('default', 'off', 'share', 'groups', 'on')),
  share numeric constraint cut_overs_share_bounds check (share between 0 and 1),
  groups text[],
  changed_at timestamptz not null
);
comment on table millrace.cut_overs is
  'The flag of each pipeline that replaces another; written by millrace.set_cut_over(). default: '
  'as the setting use_new_pipeline says.';
