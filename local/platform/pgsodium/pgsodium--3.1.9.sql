-- Dumps of older projects create pgsodium, on which Vault once rested, and use nothing of it. A migration that calls one of its
-- functions is refused by name before it runs (missing-extensions.ts).

grant usage on schema pgsodium to postgres;
