// Tables and their columns are explained where they stand, in the comment before each. The build stores what it says, for Studio to show.

/** A table with the comment directly before it: comment, name, columns and constraints, and what follows the bracket. */
const table = /^((?:--[^\n]*\n)*)(create (?:unlogged )?table) ([\w.]+) \(\n([\s\S]*?)^(\)[^;]*;)\n/gm;
/** A column with the comment directly before it. */
const column = /^((?: {2}--[^\n]*\n)+) {2}(?!constraint )(\w+) /gm;

/** The text of a file of engine/structure as it is to be run: comments of tables and columns are statements after their table. */
export function withStoredComments(text: string): string {
  return text.replaceAll(table, (_, before: string, create: string, name: string, body: string, end: string) => {
    const comments = before ? [commentOn('table', name, before)] : [];
    const columns = body.replaceAll(column, (_, comment: string, field: string) => {
      comments.push(commentOn('column', `${name}.${field}`, comment));
      return `  ${field} `;
    });
    return `${create} ${name} (\n${columns}${end}\n${comments.join('')}`;
  });
}

function commentOn(kind: string, name: string, comment: string): string {
  const sentence = comment
    .replaceAll(/^ *-- ?/gm, '')
    .trim()
    .replaceAll('\n', ' ')
    .replaceAll("'", "''");
  return `comment on ${kind} ${name} is '${sentence}';\n`;
}
