-- Has attach() write the functions and triggers of all pipelines anew. Drops their functions first,
-- except those of triggers.
do $attach$
  v_function regprocedure;
  v_pipeline text;

for v_function in
  select f.oid
  from pg_proc f
  where f.pronamespace = 'millrace'::regnamespace
    and f.prorettype <> 'trigger'::regtype
    and exists (select from millrace.pipelines p where f.proname ^@ (p.name || '__'))
    and f.oid <> all (array(
      select to_regprocedure(s)::oid
      from unnest('{{functions}}'::text[]) s
      where to_regprocedure(s) is not null))
loop
  execute 'drop function ' || v_function;
end loop;
for v_pipeline in
  select p.name
  from millrace.pipelines p
  join pg_class c on c.oid = p.entity_table
  order by p.id
loop
  perform millrace.attach(v_pipeline);
end loop;
$attach$;

drop function pg_temp.put_view(text, boolean, text);
drop function pg_temp.drop_own(text[], text[]);
