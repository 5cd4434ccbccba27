// Some statements ask for a superuser, and hosted carries them out for postgres all the same. Here a migration borrows a superuser's
// rights around each of these.
import { loadModule, parseSync } from '@libpg-query/parser';

const lend = 'select extensions.lend_superuser();\n';
const giveBack = '\nselect extensions.return_superuser();';

/** Matches a text that may have such a statement: parsing all migrations of a project would take a second. */
const mayNeed =
  /\bevent\s+trigger\b|\b(?:alter|drop)\s+extension\b|\bforeign\s+data\s+wrapper\b|\b(?:for|add|set)\s+(?:all\s+tables|tables\s+in)\b/i;

/** Lends a superuser's rights to the statements of a migration that need them. A text that cannot be parsed stays. */
export async function withHostedRights(text: string): Promise<string> {
  if (!mayNeed.test(text)) return text;
  await loadModule();
  const bytes = Buffer.from(text);
  try {
    const parts = (parseSync(text).stmts ?? []).map(({ stmt, stmt_location: at = 0, stmt_len: length }) => {
      const part = bytes.subarray(at, length ? at + length : undefined).toString();
      return needsRights(stmt as Record<string, object>, part)
        ? `${lend}${part.trim().replace(/;$/, '')};${giveBack}`
        : `${part};`;
    });
    return `${parts.join('\n')}\n`;
  } catch {
    return text;
  }
}

/** Returns whether hosted runs a statement with a superuser's rights. A block of code counts as a whole. */
function needsRights(statement: Record<string, object>, text: string): boolean {
  const [[kind = '', node] = []] = Object.entries(statement);
  switch (kind) {
    case 'CreateEventTrigStmt':
    case 'AlterEventTrigStmt':
    case 'CreateFdwStmt':
    case 'AlterExtensionStmt':
    // The real pg_cron is a superuser's.
    case 'CreateExtensionStmt':
      return true;
    case 'CreatePublicationStmt':
    case 'AlterPublicationStmt':
      return mayNeed.test(text);
    case 'DropStmt':
      return (node as { removeType?: string }).removeType === 'OBJECT_EXTENSION';
    case 'AlterObjectSchemaStmt':
      return (node as { objectType?: string }).objectType === 'OBJECT_EXTENSION';
    case 'DoStmt':
      return mayNeed.test(text);
    default:
      return false;
  }
}
