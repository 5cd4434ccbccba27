// millrace dev: the project's migrations and functions on this machine, without Docker.
import { obstacle, thisMachine } from '../../local/platform/obstacle.ts';
import { CommandError } from '../command-error.ts';
import { defineCommand } from '../define-command.ts';
import { findProject } from '../project/find-project.ts';
import { loadDev } from '../project/load-dev.ts';
import { readPort } from '../read-port.ts';

/** The exports of the package @millrace/dev. */
type Dev = typeof import('../../local/platform/dev.ts');

export const dev = defineCommand({
  usage: `npx millrace dev [--port N] [--db-port N] [--data DIR] [--postgres DIR]
  Runs your migrations, seeds and functions without Docker, with the settings of supabase/functions/.env, until Ctrl-C.
  --port N     serve the API on port N of 127.0.0.1 (default: a free port)
  --db-port N  the same for the database
  --data DIR   keep the data in DIR and find it there at the next start
  --postgres DIR  run an installed Postgres with its extensions, such as /usr/lib/postgresql/15
  --json       print one line of JSON when ready, nothing else on standard output`,
  options: {
    port: { type: 'string' },
    'db-port': { type: 'string' },
    data: { type: 'string' },
    postgres: { type: 'string' },
  },
  run: async ({ values }) => {
    for (const name of ['data', 'postgres'] as const) {
      if (values[name] === '') throw new CommandError(`--${name} is empty: name a folder.`, 2);
    }
    const ports = { port: readPort('--port', values.port), dbPort: readPort('--db-port', values['db-port']) };
    const { root } = findProject(values.workdir);
    const why = obstacle(thisMachine());
    if (why) throw new CommandError(why);
    const { runDev } = await loadDev<Dev>(root, '@millrace/dev', 'The local stack');
    await runDev({ root, dataDir: values.data, postgres: values.postgres, json: values.json, ...ports });
    return '';
  },
});
