// Which function of the engine calls which, as Postgres's own parsers read their bodies: a body's statements and expressions, the
// queries of its views, and calls in the SQL that it builds as text.
import { loadModule, parsePlPgSQLSync, parseSync } from '@libpg-query/parser';
import { codeStatements } from '../engine/engine-sql.ts';
import type { Node, Statement } from '../engine/statement.ts';

/** A function or a view of the engine. Overloads count as one. */
export interface Routine {
  /** The routine's name without its schema. */
  name: string;
  /** The files of `engine/` that define it, more than one only where overloads lie apart. */
  files: string[];
  /** The names of the routines that it calls or reads. */
  calls: Set<string>;
  /** The tables of the structure that it names, and relations within its own statements. */
  others: Set<string>;
}

const schemas = ['millrace', 'millrace_evidence', 'public'];
/** A call in SQL that is built as text. */
const calledInText = /\bmillrace\.(\w+)\s*\(/g;
/** A table in SQL that is built as text. */
const tableInText = /\b(?:from|join|into|update)\s+(?:millrace|public)\.(\w+)/g;
/** Returns whether a text is for a person, and tells what to call. */
const isTold = (text: string) => /^[A-Z]|\.$|: select millrace\.|^select [^;]*;$/.test(text);

/** Reads all functions and views of the engine that lies in the folder `engine`. */
export async function callGraph(engine: string): Promise<Map<string, Routine>> {
  await loadModule();
  const statements = await codeStatements(engine);
  const graph = new Map<string, Routine>();
  for (const statement of statements) {
    const name = routineName(statement);
    if (name === undefined) continue;
    const routine = graph.get(name) ?? { name, files: [], calls: new Set<string>(), others: new Set<string>() };
    if (!routine.files.includes(statement.file)) routine.files.push(statement.file);
    for (const called of namesIn(statement)) routine.calls.add(called);
    graph.set(name, routine);
  }
  for (const { name, calls, others } of graph.values()) {
    for (const called of calls) {
      if (!graph.has(called)) others.add(called);
      if (called === name || !graph.has(called)) calls.delete(called);
    }
  }
  return graph;
}

function routineName({ kind, node }: Statement): string | undefined {
  if (kind === 'ViewStmt') return node.view.relname;
  if (kind === 'CreateFunctionStmt') return node.funcname.at(-1).String.sval;
  return undefined;
}

/** Returns all names that a statement's SQL calls or reads, and those of no routine among them. */
function namesIn({ kind, node, text }: Statement): string[] {
  if (kind === 'ViewStmt') return namesBelow(node.query);
  const language = optionOf(node, 'language')?.String?.sval;
  const body: string = optionOf(node, 'as')?.List?.items?.[0]?.String?.sval ?? '';
  if (language === 'plpgsql') {
    return plpgsqlQueries(withoutTypes(text, node.funcname.at(-1).String.sval)).flatMap(namesOfQuery);
  }
  return body === '' ? namesBelow(node.sql_body) : namesBelow(parseSync(body));
}

function optionOf(node: Node, name: string): Node {
  return node.options?.find(({ DefElem }: Node) => DefElem.defname === name)?.DefElem.arg;
}

interface PlpgsqlQuery {
  query: string;
  /** 0: a statement; 2: an expression; 3 and more: an assignment, its target first. */
  parseMode: number;
}

/**
 * A text that the parser takes, which knows no type of the engine's and no parameter by its function's name. It drops the
 * initialiser of a record, so a variable of another name gets that.
 */
function withoutTypes(text: string, name: string): string {
  const qualified = new RegExp(`(?<![.\\w])${name}\\.`, 'g');
  return text
    .replaceAll(qualified, '')
    .replaceAll(/\bmillrace\.\w+\[\]/g, 'text[]')
    .replaceAll(/^(\s*v_\w+ (?:constant )?)millrace\.\w+(?![\w[])/gm, '$1record')
    .replaceAll(/^(\s*(v_\w+)) (?:constant )?record :=/gm, '$1 record; $2_initially text :=');
}

function plpgsqlQueries(text: string): PlpgsqlQuery[] {
  const queries: PlpgsqlQuery[] = [];
  walk(parsePlPgSQLSync(text), (key, value) => {
    if (key === 'PLpgSQL_expr') queries.push(value as PlpgsqlQuery);
  });
  return queries;
}

function namesOfQuery({ query, parseMode }: PlpgsqlQuery): string[] {
  if (parseMode === 0) return namesBelow(parseSync(query));
  const expression = parseMode === 2 ? query : query.replace(/^[^:=]*:?=/, '');
  return namesBelow(parseSync(`select ${expression}`));
}

function namesBelow(tree: unknown): string[] {
  const names: string[] = [];
  walk(tree, (key, value) => {
    if (key === 'FuncCall') {
      const parts = (value as Node).funcname.map(({ String: { sval } }: Node) => sval as string);
      if (schemas.includes(parts[0])) names.push(parts.at(-1));
    } else if (key === 'RangeVar' || key === 'relation') {
      const { schemaname, relname } = (value ?? {}) as Node;
      if (schemas.includes(schemaname)) names.push(relname);
    } else if (key === 'sval' && typeof value === 'string' && !isTold(value)) {
      for (const pattern of [calledInText, tableInText])
        for (const [, name = ''] of value.matchAll(pattern)) names.push(name);
    }
  });
  return names;
}

function walk(tree: unknown, see: (key: string, value: unknown) => void): void {
  if (typeof tree !== 'object' || tree === null) return;
  for (const [key, value] of Object.entries(tree)) {
    see(key, value);
    walk(value, see);
  }
}
