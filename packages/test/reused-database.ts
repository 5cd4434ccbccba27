// Databases that serve one test after another. Between two tests a superuser's session, the keeper, drops what the test made,
// brings the tables, sequences and statistics back to their first contents and then compares the catalogs: a database that a test
// changed in any other way (a function replaced, a table altered) is dropped instead. Sessions stay, with the plans that
// they have made.
import type { Client } from 'pg';
import { pg } from '../../local/platform/embedded.ts';
import type { TestDatabase } from './database.ts';
import { letProcessEnd } from './let-process-end.ts';

/** A table that a test left larger than this, in bytes, gets new files: the next one would walk through what is deleted. */
const largestTable = 1_000_000;

/** Columns of pg_class that change where a table was emptied, although nobody altered it. */
const unlike = `'{relfilenode,relfrozenxid,relminmxid}'::text[]`;

/** Catalogs whose rows show a made, altered or dropped object. `counted`: the rows that count. `like`: written but unchanged. */
const catalogs: Record<string, { counted?: string; like?: string }> = {
  pg_attrdef: {},
  pg_attribute: {},
  pg_cast: {},
  // Rows that "vacuum analyze" and "truncate" wrote are restored, except for the files and the age of the rows.
  pg_class: { like: `exists (select from relations r where r.oid = c.oid and r.content = to_jsonb(c) - ${unlike})` },
  pg_collation: {},
  pg_constraint: {},
  pg_default_acl: {},
  pg_description: { like: 'c.description = (select r.comment from routines r where r.oid = c.objoid)' },
  pg_enum: {},
  pg_event_trigger: {},
  pg_extension: {},
  pg_foreign_server: {},
  pg_index: {},
  pg_inherits: {},
  // A session makes temporary schemas once and leaves them behind, empty.
  pg_namespace: { counted: "c.nspname not like 'pg\\_%temp\\_%'" },
  pg_operator: {},
  pg_policy: {},
  // The engine rewrites some of its functions whenever a pipeline is defined, so these functions are restored.
  pg_proc: { like: "exists (select from routines r where r.oid = c.oid and to_jsonb(r) - 'comment' = to_jsonb(c))" },
  pg_publication: {},
  pg_rewrite: {},
  pg_sequence: {},
  pg_statistic: {},
  pg_statistic_ext: {},
  pg_trigger: {},
  pg_type: {},
};

const isUsers = `n.nspname <> 'information_schema' and n.nspname not like 'pg\\_%'`;

// Objects made later have higher numbers, and rows written later have higher transaction ids.
const prepare = `
  set session_replication_role = replica;
  set lock_timeout = '3s';
  set plan_cache_mode = force_generic_plan;
  create temporary table made_before as select 1 as dummy;
  create temporary table catalog_sizes (name text primary key, size bigint not null);
  create function pg_temp.drop_new(p_last oid) returns void language plpgsql as $$
  declare
    v_drop text;
  begin
    for v_drop in
      select format('drop extension %I cascade', e.extname) from pg_extension e where e.oid > p_last
      union all
      select format('drop schema %I cascade', n.nspname) from pg_namespace n where n.oid > p_last and ${isUsers}
      union all
      select format('drop %s if exists %I.%I cascade',
        case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
          when 'c' then 'type' when 'f' then 'foreign table' else 'table' end, n.nspname, c.relname)
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.oid > p_last and c.relkind in ('r', 'p', 'v', 'm', 'S', 'c', 'f') and not c.relispartition and ${isUsers}
        and n.oid <= p_last
        and not exists (select from pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass
          and d.deptype in ('i', 'a', 'e') and d.refclassid in ('pg_class'::regclass, 'pg_extension'::regclass))
      union all
      select format('drop routine if exists %s cascade', p.oid::regprocedure)
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where p.oid > p_last and n.oid <= p_last and ${isUsers}
        and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
      union all
      select format('drop type if exists %I.%I cascade', n.nspname, t.typname)
      from pg_type t join pg_namespace n on n.oid = t.typnamespace
      where t.oid > p_last and t.typtype in ('e', 'd', 'r') and n.oid <= p_last and ${isUsers}
        and not exists (select from pg_depend d where d.objid = t.oid and d.deptype = 'e')
      union all
      select format('drop trigger if exists %I on %s', t.tgname, t.tgrelid::regclass)
      from pg_trigger t where t.oid > p_last and t.tgrelid <= p_last and not t.tgisinternal
      union all
      select format('drop policy if exists %I on %s', p.polname, p.polrelid::regclass)
      from pg_policy p where p.oid > p_last and p.polrelid <= p_last
    loop
      begin
        execute v_drop;
      -- An object that went with another is named by its number alone, which is no name.
      exception when undefined_table or undefined_object or undefined_function or invalid_schema_name or syntax_error then
        null;
      end;
    end loop;
  end $$;
  create temporary table routines as
    select p.*, obj_description(p.oid, 'pg_proc') as comment
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.prokind in ('f', 'p') and ${isUsers};
  alter table routines add primary key (oid);
  create function pg_temp.restore_routines(p_since xid) returns void language plpgsql as $$
  declare
    v_age int := age(p_since);
    v_columns text := (
      select string_agg(quote_ident(a.attname), ', ') from pg_attribute a
      where a.attrelid = 'pg_proc'::regclass and a.attnum > 0 and a.attname <> 'oid');
    v_routine record;
  begin
    for v_routine in
      select r.oid, r.comment from routines r join pg_proc p using (oid) where age(p.xmin) <= v_age
    loop
      execute format('update pg_proc set (%1$s) = (select %1$s from routines where oid = $1) where oid = $1', v_columns)
        using v_routine.oid;
      if obj_description(v_routine.oid, 'pg_proc') is distinct from v_routine.comment then
        execute format('comment on routine %s is %L', v_routine.oid::regprocedure, v_routine.comment);
      end if;
    end loop;
  end $$;
  create temporary table relations as
    select c.oid, to_jsonb(c) - ${unlike} as content, c.relpages, c.reltuples, c.relallvisible
    from pg_class c
    where c.relkind in ('r', 'i', 't') and c.oid between 16384 and 'pg_temp.made_before'::regclass;
  alter table relations add primary key (oid);
  create function pg_temp.restore_statistics(p_since xid) returns void language plpgsql as $$
  declare
    v_age int := age(p_since);
  begin
    update pg_class c set relpages = r.relpages, reltuples = r.reltuples, relallvisible = r.relallvisible
    from relations r
    where r.oid = c.oid and (c.relpages, c.reltuples, c.relallvisible) <> (r.relpages, r.reltuples, r.relallvisible);
    -- Also those of a table that was emptied, whose sizes are the first ones again.
    delete from pg_statistic s where age(s.xmin) <= v_age;
  end $$;
  create function pg_temp.catalogs_now(p_since xid)
  returns table (name text, size bigint, written bigint) language plpgsql as $$
  declare
    v_age int := age(p_since);
  begin
    return query
    ${Object.entries(catalogs)
      .map(([name, { counted = true, like }]) => {
        // Comparing whole rows is slow, so a second query compares only the rows that were written.
        const written = like
          ? `(select count(*) from pg_catalog.${name} c where ${counted} and age(c.xmin) <= v_age and not (${like}))`
          : 'count(*) filter (where age(c.xmin) <= v_age)';
        return `select '${name}', count(*), ${written} from pg_catalog.${name} c where ${counted}`;
      })
      .join(' union all ')}
    union all
    select 'statistics', sum(c.relpages + c.reltuples)::bigint, 0 from pg_class c
    where c.relkind in ('r', 'i') and c.oid between 16384 and 'pg_temp.made_before'::regclass
    union all
    select 'pg_db_role_setting', count(*), 0 from pg_db_role_setting s
    where s.setdatabase = (select d.oid from pg_database d where d.datname = current_database());
  end $$;
  create temporary table copies (table_name text, copy_name text, columns text);
  do $$
  declare
    v_table record;
    v_body text := '';
    v_tables oid[] := '{}';
    v_filled boolean;
  begin
    for v_table in
      select c.oid, c.oid::regclass::text as name, (
          select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        ) as columns
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and ${isUsers}
    loop
      execute format('select exists (select from %s)', v_table.name) into v_filled;
      if v_filled then
        execute format('create temporary table %I as table %s', 'copy_' || v_table.oid, v_table.name);
        v_body := v_body || format(
          'if exists (select from %1$s t where age(t.xmin) <= v_age)
             or (select count(*) from %1$s) <> (select count(*) from pg_temp.%2$I) then
             delete from %1$s;
             insert into %1$s (%3$s) overriding system value select %3$s from pg_temp.%2$I;
           end if;
           ', v_table.name, 'copy_' || v_table.oid, v_table.columns);
      else
        v_body := v_body || format('delete from %s;', v_table.name);
      end if;
      v_tables := v_tables || v_table.oid;
    end loop;
    for v_table in
      select c.oid, c.oid::regclass::text as name, s.seqstart, pg_sequence_last_value(c.oid) as last_value
      from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_sequence s on s.seqrelid = c.oid
      where ${isUsers}
    loop
      v_body := v_body || format(
        'if pg_sequence_last_value(%1$s) is distinct from %2$L then perform setval(%1$s, %3$s, %4$L); end if;
        ', v_table.oid, v_table.last_value, coalesce(v_table.last_value, v_table.seqstart), v_table.last_value is not null);
    end loop;
    execute format(
      'create function pg_temp.refill(p_since xid) returns void language plpgsql as $body$
       declare
         v_age int := age(p_since);
         v_grown text := (
           select string_agg(t.oid::regclass::text, '', '') from unnest(%L::oid[]) t (oid)
           where pg_relation_size(t.oid) > ${largestTable});
       begin
         if v_grown is not null then
           -- Tables that refer to these become empty with them, and are filled below.
           execute ''truncate '' || v_grown || '' cascade'';
         end if;
         %s
       end $body$', v_tables, v_body);
  end $$;
  insert into catalog_sizes
    select name, size from pg_temp.catalogs_now((pg_current_xact_id()::text::bigint + 1)::text::xid)`;

/** Databases that no test uses now. Held by the process, not the file: files that share a process share them. */
const held = globalThis as { restingDatabases?: Map<string, ReusedDatabase[]> };
held.restingDatabases ??= new Map();
const resting = held.restingDatabases;

const nextTransaction = 'select (pg_current_xact_id()::text::bigint + 1)::text as since';

class ReusedDatabase {
  readonly database: TestDatabase;
  readonly #keeper: Client;
  #last = 0;
  /** The transaction id from which on rows are the current test's. */
  #since = '0';

  private constructor(database: TestDatabase, keeper: Client) {
    this.database = database;
    this.#keeper = keeper;
  }

  static async create({ create, setUp }: Omit<Reused, 'kind'>): Promise<ReusedDatabase> {
    const database = await create();
    await setUp(database);
    const keeper = new pg.Client({ connectionString: database.superUrl });
    keeper.on('error', () => {});
    await keeper.connect();
    letProcessEnd(keeper);
    const reused = new ReusedDatabase(database, keeper);
    await keeper.query(prepare);
    const { rows } = await keeper.query(`select max(oid)::bigint as last from (
      select max(c.oid) as oid from pg_class c union all select max(p.oid) from pg_proc p) o`);
    reused.#last = rows[0].last;
    await reused.#begin();
    return reused;
  }

  async #begin(): Promise<void> {
    const { rows } = await this.#keeper.query(nextTransaction);
    this.#since = rows[0].since;
  }

  /** Resolves to the reason why the database cannot serve another test; null when it is as it was at first. */
  async restore(): Promise<string | null> {
    try {
      await this.database.recall(this.#keeper);
      const since = `'${this.#since}'`;
      // Sends all statements at once, since a round trip takes as long as their work. Rows written by then are not the next test's.
      const results = (await this.#keeper.query(
        `begin;
         select pg_temp.drop_new(${this.#last});
         select pg_temp.restore_routines(${since});
         select pg_temp.refill(${since});
         select pg_temp.restore_statistics(${since});
         select n.name from pg_temp.catalogs_now(${since}) n join catalog_sizes s using (name)
         where n.written > 0 or n.size is distinct from s.size;
         commit;
         ${nextTransaction}`,
      )) as unknown as pg.QueryResult[];
      const [, , , , , changed, , begun] = results.map(({ rows }) => rows);
      if (changed?.length !== 0) return `changed: ${changed?.map(({ name }) => name).join(', ')}`;
      this.#since = begun?.[0].since;
      return null;
    } catch (error) {
      return String(error);
    }
  }

  async drop(): Promise<void> {
    await this.#keeper.end().catch(() => {});
    await this.database.drop();
  }
}

/** A kind of database, those of which stand in for one another. */
export interface Reused {
  kind: string;
  create(): Promise<TestDatabase>;
  /** Called once for a database, before its first test. */
  setUp(database: TestDatabase): Promise<void>;
}

/**
 * A database of this kind. Its drop() hands it on to the next test, as `setUp` left it, or drops it when that cannot be.
 */
export async function borrowDatabase(reused: Reused): Promise<TestDatabase> {
  const idle = resting.get(reused.kind) ?? [];
  resting.set(reused.kind, idle);
  const lent = idle.pop() ?? (await ReusedDatabase.create(reused));
  return {
    ...lent.database,
    async drop() {
      const reason = await lent.restore();
      if (reason) await lent.drop();
      else idle.push(lent);
    },
  };
}
