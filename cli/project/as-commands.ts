// Translates the engine's hints, which name SQL and functions of the API, into commands of the command line.

/**
 * Statements of the engine's hints, each with the command that does the same. The reader fills in words in capitals.
 */
const commands: [RegExp, string | ((...parts: string[]) => string)][] = [
  [
    /select millrace\.(pause|unpause)\(([^()]*)\);?/g,
    (_, verb = '', given = '') => `npx millrace ${verb} ${plain(given)}`,
  ],
  [
    /select millrace\.(cancel|retry)\((run|\d+)\)/g,
    (_, verb = '', run = '') => `npx millrace ${verb} ${run.toUpperCase()}`,
  ],
  [
    /select millrace\.skip\((run|\d+), '?(\w+)'?\)/g,
    (_, run = '', stage = '') => `npx millrace skip ${run.toUpperCase()} --stage ${stage}`,
  ],
  [/millrace\.reset\(run, stage\)/g, 'npx millrace reset RUN --from STAGE'],
  [/select \* from millrace\.(?:throttles|bypasses)\b/g, 'npx millrace status PIPELINE'],
  [/select \* from millrace\.silences where until > now\(\)/g, 'npx millrace journal --verb silence'],
  [/select millrace\.end_bypass\(pipeline, stage\)/g, 'npx millrace bypass PIPELINE STAGE --end'],
  [/select \* from millrace\.timeline\((\d+)\)/g, 'npx millrace show $1'],
  [/millrace_overview\(\)/g, 'npx millrace status'],
  [/millrace_alerts\(\{"open": true\}\)/g, 'npx millrace alerts'],
  [/millrace_runs\(\{"pipeline": …\}\)/g, 'npx millrace runs PIPELINE'],
  [/millrace_runs\(\{"entity": "…"\}\)/g, 'npx millrace runs --entity KEY'],
];

const plain = (given: string) => given.replaceAll(/[',]/g, '').trim();

/** Returns a hint of the engine with the commands of the command line in the place of the SQL for which there are some. */
export function asCommands(hint: string): string {
  return commands.reduce((text, [said, command]) => text.replace(said, command as string), hint);
}
