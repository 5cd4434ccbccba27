// The build writes a function's header, rights and stored comments, so that engine/ holds only what people decide.
import { parseSync } from '@libpg-query/parser';
import { isPublic } from '../check/public-surface.ts';
import { commented, grantedOn, identityOf } from './catalogue.ts';
import type { Node, Statement } from './statement.ts';

const searchPath = 'set search_path = pg_catalog, pg_temp';
/** How a function answers Edge Functions of another release. */
const refusal = `
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;`;
/** Where a header ends: the line that opens the body. */
const body = /^(?:as \$|begin atomic$)/m;
/** The line that opens a body, which the pieces of a split keep. */
const opening = /(^as \$\w*\$\n)/m;
/** A body without a block of its own: a query, or statements of which each ends with a semicolon. */
const blockless = /^as (?:\$\w*\$)\n(?:#.*\n)?(?!(?:declare|begin)\n|#)([\s\S]*)\n\$\w*\$$/m;
/** A body of declarations, a blank line, and statements at the margin. */
const declaring = /^(as \$\w*\$\ndeclare\n(?: .*\n)+)\n(?! )([\s\S]*)\n(\$\w*\$)$/m;
const query = /^(?:\s|--.*\n)*(?:select|with|insert|update|delete)\b[\s\S]*[^;]$/;
/** Comments, and the texts in a body that may be bodies of other functions. */
const nested = /--.*|(\$\w+\$)[\s\S]*?\1|'(?:[^']|'')*'/g;
/** A function's name and parameters, up to the bracket that closes them: brackets within are of types and defaults. */
const parameters = /^create function [\w.]+\((?:[^()]|\([^()]*\))*\)/m;

const lookUps = [
  'enable_seqscan',
  'enable_indexonlyscan',
  'enable_mergejoin',
  'enable_hashjoin',
  'enable_memoize',
  'jit',
];
/** The planner settings that a header asks for by one name, `set plan = by_key`. */
const plans: Record<string, string[]> = {
  // Every look-up goes by an index, row by row, and is planned once a connection. An index-only scan walks a whole index: while a table is
  // small, it looks cheaper than a look-up by the right key.
  by_index: [...lookUps.map((name) => `${name} = off`), 'plan_cache_mode = force_generic_plan'],
  // The same without bitmaps, for calls that look up single rows.
  by_key: ['enable_bitmapscan', ...lookUps]
    .map((name) => `${name} = off`)
    .concat('plan_cache_mode = force_generic_plan'),
  // The first rows in the order of an index, which no sort begins with.
  in_order: ['enable_seqscan', 'enable_bitmapscan', 'enable_mergejoin', 'enable_sort', 'jit'].map(
    (name) => `${name} = off`,
  ),
  // Planned at each call, since the number of ids decides whether a hash or look-ups are cheaper.
  anew: ['enable_seqscan = off', 'enable_hashjoin = on', 'jit = off', 'plan_cache_mode = force_custom_plan'],
  // Calls of operators read no table as a whole. Lists of pipelines and stages may hash, lists of runs may not.
  for_lists: ['enable_seqscan', 'enable_mergejoin', 'enable_memoize', 'jit'].map((name) => `${name} = off`),
  for_runs: ['enable_seqscan', 'enable_mergejoin', 'enable_hashjoin', 'enable_memoize', 'jit'].map(
    (name) => `${name} = off`,
  ),
  free: [],
};
const plan = /^set plan = (\w+)\n/m;
/** A verb by SQL, `set verb = hurry, attempts`: the verb, and the field of its answer that is returned. */
const verb = /\nset verb = (\w+)(?:, (\w+))?$/;

/** The callers of a function beside its owner, `set callers = people`. */
const callers = /\nset callers = (\w+)/;
const roles: Record<string, string> = {
  services: 'service_role',
  people: 'authenticated, service_role',
  everybody: 'anon, authenticated, service_role',
};

/** The statements as they are to be run: functions with their whole headers, those of the Data API with their rights, and what people call or read with its comment. */
export function withHeaders(statements: Statement[]): Statement[] {
  const of = (kind: string) => statements.filter((statement) => statement.kind === kind);
  const granted = new Set(of('GrantStmt').flatMap(({ node }) => grantedOn(node)));
  const described = new Set(of('CommentStmt').map(commented));
  return statements.flatMap((statement) => {
    const identity = shownAs(statement);
    if (!identity) return [statement];
    const isFunction = statement.kind === 'CreateFunctionStmt';
    const view = { ...statement, text: atOnce(statement.text.replace(/^create (?=view)/m, 'create or replace ')) };
    const named = `${wordFor(statement)} ${identity}`;
    const [, said] = callers.exec(statement.text) ?? [];
    const isOfDataApi = isFunction && !said && identity.startsWith('public.') && !granted.has(identity);
    const who = said ?? (isOfDataApi ? callersIn(statement.file) : undefined);
    return [
      isFunction ? withHeader(isOfDataApi ? ofDataApi(withBlock(statement)) : withBlock(statement)) : view,
      ...(who ? rightsOf(identity, who) : []).map((text) => built(statement, 'GrantStmt', text)),
      ...(described.has(named) ? [] : commentOf(statement, named)).map((text) => built(statement, 'CommentStmt', text)),
    ];
  });
}

function wordFor({ kind, node }: Statement): string {
  if (kind === 'ViewStmt') return 'view';
  return node.is_procedure ? 'procedure' : 'function';
}

/** Returns how statements about a function or a view name it. */
function shownAs({ kind, node }: Statement): string | undefined {
  if (kind === 'CreateFunctionStmt') return identityOf(node);
  return kind === 'ViewStmt' ? `${node.view.schemaname}.${node.view.relname}` : undefined;
}

/** Stores the comment directly before a view, or a function that people call, for Studio to show. */
function commentOf({ kind, text }: Statement, named: string): string[] {
  const [, comment] = /(?:^|\n)((?:--[^\n]*\n)+)create /.exec(text) ?? [];
  const name = named.replace(/^\w+ |\(.*$/g, '');
  if (!comment || (kind === 'CreateFunctionStmt' && !isPublic(name))) return [];
  const sentence = comment.replaceAll(/^-- /gm, '').trim().replaceAll('\n', ' ').replaceAll("'", "''");
  return [`comment on ${named} is '${sentence}'`];
}

const built = ({ file }: Statement, kind: string, text: string): Statement => ({
  file,
  kind,
  node: nodeOf(text),
  text,
});

/** The fields that an operator's question may have, `set reads = '{"pipeline": "name"}'`. */
const reads = /\nset reads = ('[^']*')([\s\S]*\nas \$\$\n)(declare\n|)([\s\S]*)/;
/** The pipeline that such a question names, where the body reads it. */
const named =
  "  v_pipeline millrace.pipelines := millrace.pipeline_named(p_query ->> 'pipeline', v_caller.pipelines);\n";

/** A handler of all errors, of cancelled statements too, which `others` leaves out. The context says who raised one. */
const anything = /^( *)exception when anything then$/gm;

/** An error's code, before its message: `raise exception 'MR003: there is no run %', p_run using hint = …`. */
export const coded = /(\braise exception\s+')([A-Z0-9]{5}): ([\s\S]*?\busing )(?=hint\b)/g;

/** Indents the statements of a body, and puts those in plpgsql between `begin` and `end`. */
function withBlock(statement: Statement): Statement {
  const text = asked(statement.text)
    .replaceAll(coded, "$1$3errcode = '$2', ")
    .replaceAll(
      anything,
      '$1exception when query_canceled or assert_failure or others then\n' +
        '$1  get stacked diagnostics v_context = pg_exception_context;',
    )
    .replace(reads, (_, fields: string, header: string, declare: string, written: string) => {
      const caller = `declare\n  v_caller millrace.caller := millrace.authorize(p_query, ${fields});\n`;
      return `${header}${caller}${/\bv_pipeline\b/.test(written) ? named : ''}${declare ? '' : '\n'}${written}`;
    });
  if (declaring.test(text)) {
    const whole = text.replace(
      declaring,
      (_, declared: string, written: string, quote: string) => `${declared}begin\n${indented(written)}\nend\n${quote}`,
    );
    return { ...statement, text: whole };
  }
  const [, written] = blockless.exec(text) ?? [];
  if (written === undefined) return { ...statement, text };
  const body = written.startsWith(' ') ? written : indented(written);
  const block = query.test(written) ? body : `begin\n${body}\nend`;
  // With the ends of the lines around it: a hook in which no module has a part has an empty body.
  return { ...statement, text: text.replace(`\n${written}\n`, () => `\n${block}\n`) };
}

/** Returns the header of an operator's question, which changes nothing and reads lists unless it says another plan. */
function asked(text: string): string {
  if (!reads.test(text)) return text;
  const lists = plan.test(text) ? '' : '\nset plan = for_lists';
  return text.replace(/\nset (?:plan|reads|callers) =/, (set) => `\nstable${lists}${set}`);
}

/** Indents the statements of a block. */
export const indented = (statements: string) => statements.replaceAll(/^(?=.)/gm, '  ');

/** Gives a function of the Data API its owner's rights. One for Edge Functions refuses other contracts, and plans by keys. */
function ofDataApi(statement: Statement): Statement {
  const { file, text } = statement;
  const owned = text.replace(body, (as) => `security definer\n${as}`);
  if (isForOperators(file)) return { ...statement, text: owned };
  const planned = plan.test(owned) ? owned : owned.replace(body, (as) => `set plan = by_key\n${as}`);
  return { ...statement, text: planned.replace(/^begin$/m, (begin) => begin + refusal) };
}

function withHeader(statement: Statement): Statement {
  const text = wholeHeader(statement);
  return { ...statement, text, node: nodeOf(text) };
}

/** Completes a function's header. */
function wholeHeader({ file, text, node }: Statement): string {
  const said = withDefaults(withVerb(text, node), node);
  const replacing = said.replace(/^create (?=function|procedure)/m, 'create or replace ');
  const planned = replacing.replace(callers, '').replace(plan, (_, name: string) => {
    const settings = plans[name];
    if (!settings)
      throw new Error(`engine/${file}: there is no plan ${name}; the build has ${Object.keys(plans).join(', ')}.`);
    return settings.length > 0 ? `${settings.map((setting) => `set ${setting}`).join(' ')}\n` : '';
  });
  return planned.replace(body, (as) => `${searchPath}\n${as}`);
}

/** Says what most functions are and need not say: they return nothing, those of the Data API jsonb, and their bodies show their language. */
function withDefaults(text: string, node: Node): string {
  const named = (option: string) => node.options?.some(({ DefElem }: Node) => DefElem.defname === option);
  const isOut = ({ FunctionParameter: { mode } }: Node) => /OUT|TABLE/.test(mode);
  const returns = node.is_procedure || node.returnType || node.parameters?.some(isOut);
  const type = identityOf(node).startsWith('public.') ? 'jsonb' : 'void';
  const typed = returns ? text : text.replace(parameters, (list) => `${list} returns ${type}`);
  // A user who writes a row lacks the rights of its trigger, so triggers run as their owner.
  const whole = typed.replace(/^(create function .* returns trigger)$/m, '$1\nsecurity definer');
  if (named('language') || !named('as')) return whole;
  const [, statements = ''] = blockless.exec(text) ?? [];
  if (query.test(statements)) return atOnce(whole.replace(body, (as) => `language sql\n${as}`));
  const declared = declarations.reduce(withDeclaration, whole);
  return declared.replace(body, (as) => `language plpgsql\n${as}`);
}

/** Writes the moment of the call where SQL reads it, in a form that Postgres evaluates once. */
const atOnce = (text: string) => text.replaceAll(/\bv_now\b/g, '(select millrace.now())');

/** Variables that a body reads without declaring them: the context of an error, and the moment at which the call begins. */
const declarations = ['v_context text;', 'v_now timestamptz := millrace.now();'];

/** Declares a variable first of all in a body that reads it and declares none of its name. */
function withDeclaration(text: string, declaration: string): string {
  const [head = '', ...rest] = text.split(opening);
  const read = rest.join('').replaceAll(nested, '');
  const [name = '', type = ''] = declaration.split(/[ ;]/);
  if (!new RegExp(`\\b${name}\\b`).test(read) || new RegExp(`^ *${name} ${type}`, 'm').test(read)) return text;
  const declared = /^declare$/m.test(read) ? 'declare' : 'begin';
  const [before = '', after = ''] = rest.join('').split(new RegExp(`^${declared}$\\n([\\s\\S]*)`, 'm'));
  return `${head}${before}declare\n  ${declaration}\n${declared === 'begin' ? 'begin\n' : ''}${after}`;
}

/** Writes the body of a verb by SQL: the request that an operator sends, with a field for each parameter. */
function withVerb(text: string, { parameters = [] }: Node): string {
  const returned = /returns (\w+)\nset verb/.exec(text)?.[1];
  return text.replace(verb, (_, name: string, field?: string) => {
    const fields = (parameters as Node[]).flatMap(({ FunctionParameter: { name } }) => [`'${name.slice(2)}'`, name]);
    const act = `millrace.act(jsonb_build_object(\n    'verb', '${name}', ${fields.join(', ')}))`;
    const body = field ? `(${act}\n    ->> '${field}')::${returned}` : act;
    return `\nlanguage sql\nas $$\n  select ${body}\n$$`;
  });
}

/** Returns the callers of a file's functions unless one names others: Edge Functions, and people for operators' functions. */
const callersIn = (file: string) => (isForOperators(file) ? 'people' : 'services');

function rightsOf(identity: string, who: string): string[] {
  if (!roles[who])
    throw new Error(`${identity}: nobody is called ${who}; the build has ${Object.keys(roles).join(', ')}.`);
  return [
    `revoke all on function ${identity} from public, anon, authenticated, service_role`,
    `grant execute on function ${identity} to ${roles[who]}`,
  ];
}

const isForOperators = (file: string) => file.startsWith('modules/operators/');
const nodeOf = (text: string): Node => Object.values(parseSync(text).stmts?.[0]?.stmt ?? {})[0];
