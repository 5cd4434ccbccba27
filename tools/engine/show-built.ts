// npm run engine:show NAME: prints the functions and views of the engine that have this name, as they are installed.
import path from 'node:path';
import { codeStatements } from './engine-sql.ts';
import type { Statement } from './statement.ts';

const name = process.argv[2]?.replace(/^(?:millrace|public)\.|\(.*$/g, '');
if (name === undefined) {
  console.error('Name a function, a view or a hook: npm run engine:show complete');
  process.exit(2);
}
const found = (await codeStatements(path.join(import.meta.dirname, '..', '..', 'engine'))).filter(isNamed);
if (found.length === 0) {
  console.error(
    `engine/ has no function and no view "${name}". attach() writes those of a pipeline into the database.`,
  );
  process.exit(1);
}
for (const { file, text } of found) console.log(`-- engine/${file}\n${text};\n`);

function isNamed({ kind, node }: Statement): boolean {
  if (kind === 'ViewStmt') return node.view.relname === name;
  return kind === 'CreateFunctionStmt' && node.funcname.at(-1).String.sval === name;
}
