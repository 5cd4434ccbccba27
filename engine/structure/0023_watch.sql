-- Watching: the rows whose changes are sent to clients by Realtime

-- A row for each entity that a client watches. A crash of the server may empty the table. Clients
-- renew their leases, and ask again by themselves.
create unlogged table millrace.watches (
  pipeline_id int not null,
  entity_id text not null,
  -- The private topic of Realtime on which the client gets messages.
  topic text not null,
  until timestamptz not null,
  sent_at timestamptz not null default '-infinity',
  primary key (pipeline_id, entity_id, topic)
) with (fillfactor = 50);
create index watches_by_topic on millrace.watches (topic, until);
