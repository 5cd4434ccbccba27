-- People know a lead by its address: the index finds it by how that begins.
create index leads_by_email on public.leads (email text_pattern_ops);
