// The code of the engine's SQL, by which its size is measured.

/** Strings, quoted names and comments: what begins first is read to its end, so that none is found within another. */
const quoted =
  /(?<=\b(?:as|do)\s+)(\$\w*\$)([\s\S]*?)\1|(?<!\w)(\$(?:[a-z_]\w*)?\$)[\s\S]*?\3|\be'(?:[^'\\]|\\[\s\S])*'|'[^']*'|"[^"]*"|--.*|\/\*[\s\S]*?\*\//gi;

/** Returns the SQL without its comments, those in functions' bodies included, and without blank lines. */
export function codeOf(sql: string): string {
  return withoutComments(sql)
    .replaceAll(/[ \t]+$/gm, '')
    .replaceAll(/^\n/gm, '');
}

function withoutComments(sql: string): string {
  return sql.replaceAll(quoted, (part: string, quote?: string, body = '') => {
    if (quote !== undefined) return `${quote}${withoutComments(body)}${quote}`;
    return /^(?:--|\/\*)/.test(part) ? '' : part;
  });
}
