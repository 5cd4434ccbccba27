// The rule of the extension safeupdate, which the Data API of a hosted project loads, for statements of PostgREST
// itself. Only the extension could refuse statements of functions: `npm run check` reads their text.

/** Parameters that choose no rows. */
const chooseNothing = ['select', 'columns', 'on_conflict', 'order'];
/** Parameters that PostgREST turns into a WHERE, or refuses itself, also with a table's name before them. */
const chooseRows = ['and', 'or', 'limit', 'offset'];

/**
 * The answer to a PATCH or DELETE of all rows, as PostgREST gives it when the database refuses the statement; undefined for any
 * other call. `path` is that of a table below /rest/v1, such as `/things`. A table that does not exist is refused alike, and
 * so is a PATCH that sets nothing, which PostgREST lets pass.
 * @example refusalOfAll('DELETE', '/things', new URLSearchParams('select=id'))?.message // 'DELETE requires a WHERE clause'
 */
export function refusalOfAll(method: string | undefined, path: string, parameters: URLSearchParams) {
  const statement = { PATCH: 'UPDATE', DELETE: 'DELETE' }[method ?? ''];
  if (!statement || !/^\/[^/]+$/.test(path) || [...parameters].some(isFilter)) return undefined;
  return { code: '21000', details: null, hint: null, message: `${statement} requires a WHERE clause` };
}

/** Returns whether a parameter chooses rows of the table itself, and not of one that is shown with them. */
function isFilter([name, value]: [string, string]): boolean {
  // A dot within quotes, or of a value in a JSON column, parts no names.
  const [column = ''] = name.replaceAll(/"[^"]*"/g, 'quoted').split('->');
  const names = column.split('.');
  if (chooseRows.includes(names.at(-1) ?? '')) return true;
  return value !== '' && names.length === 1 && !chooseNothing.includes(column);
}
