-- Dumps of older projects create pgsodium, on which Vault once rested, and use nothing of it.
-- missing-extensions.ts refuses a migration that calls one of its functions, by name, before the
-- migration runs.

grant usage on schema pgsodium to postgres;
