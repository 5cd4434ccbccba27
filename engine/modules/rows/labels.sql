-- Returns how the user's own indexes let labels be searched. `prefix`: a btree index has
-- text_pattern_ops or the collation C. `exact`: another btree index. Null: none.
create function millrace.label_search(p_pipeline millrace.pipelines) returns text
stable
as $$
select max(case
    when o.opcname in ('text_pattern_ops', 'varchar_pattern_ops') or l.collcollate = 'C'
      then 'prefix'
    else 'exact' end)
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_am m on m.oid = c.relam
join pg_opclass o on o.oid = i.indclass[0]
left join pg_collation l on l.oid = i.indcollation[0]
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
where i.indrelid = p_pipeline.entity_table and a.attname = p_pipeline.label_column
  and i.indpred is null and i.indisvalid and m.amname = 'btree'
$$;

-- A finding for each pipeline with labels: whether an index finds rows by their label.
create view millrace.label_findings (what, ok, detail) as
select format('labels of pipeline %s are found by an index', p.name), s.how is not null,
  case
    when s.how is null then format('nothing is found by them: '
      'create index concurrently on %s (%I text_pattern_ops);', p.entity_table, p.label_column)
    else format('%s, %s', p.label_column, s.how)
  end
from millrace.pipelines p
cross join millrace.label_search(p) s(how)
where p.label_column is not null;
