-- A migration that creates pg_graphql goes through; nothing answers queries here.

grant usage on schema graphql to postgres, anon, authenticated, service_role;
