-- Which function a wake-up went to: pg_net forgets the address with the request, and its answer
-- alone does not say whose it is.

alter table millrace.posts add column function_name text;
comment on column millrace.posts.function_name is 'The Edge Function that was to answer.';
