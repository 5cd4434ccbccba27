// A count of the children of one parent where the engine has no fan-in of its own: each batch adds a tally, and a collection of children adds
// the tallies up into the parent's row. A plain counter would have all workers queue for that row.
import type pg from 'pg';

const schema = `
drop schema if exists join_counter cascade;
create schema join_counter;
create table join_counter.parents (
  id int primary key,
  total int,
  done int not null default 0,
  joined boolean not null default false
) with (fillfactor = 50);
create table join_counter.tallies (id bigint generated always as identity primary key, done int not null);
insert into join_counter.parents (id) values (1);
create function join_counter.collectChildren() returns boolean language plpgsql as $$
declare
  v_ready boolean;
begin
  perform from join_counter.parents where id = 1 for update;
  with taken as (delete from join_counter.tallies returning done)
  update join_counter.parents set done = done + (select coalesce(sum(taken.done), 0) from taken) where id = 1;
  update join_counter.parents set joined = true where id = 1 and not joined and done = total returning true into v_ready;
  return coalesce(v_ready, false);
end $$;
`;

/** Makes the counter anew, for one parent. */
export async function createJoinCounter(client: pg.Client): Promise<void> {
  await client.query(schema);
}

/** Says how many children there are; the collection of children after it may find them all done. */
export const closeTotal = 'update join_counter.parents set total = $1 where id = 1';

/** Adds a tally of so many children. */
export const addTally = 'insert into join_counter.tallies (done) values ($1)';
