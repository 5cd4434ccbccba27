// npm run stack: starts a stack with the examples and keeps it until Ctrl-C. With --json it prints one line for programs to read.
import path from 'node:path';
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { readPort } from '../cli/read-port.ts';
import { tellChangedSettings } from '../local/platform/follow-settings.ts';
import { reviewLink } from '../local/platform/review-link.ts';
import { runUntilStopped } from '../local/platform/run-until-stopped.ts';
import { readSettings, settingsFile, settingWarnings } from '../local/platform/settings.ts';
import { startStack } from '../local/platform/stack.ts';
import { startServices } from '../local/services/start-services.ts';
import { argumentsOrExit, refuseKeptByNpm } from './command-arguments.ts';

const usage = `npm run stack -- [--json] [--data DIR] [--port N] [--db-port N]
  --json       print one line of JSON when ready, nothing else on standard output
  --data DIR   keep the data in DIR and find it there at the next start
  --port N     serve the API on port N of 127.0.0.1 (default: a free port)
  --db-port N  the same for the database`;

const {
  json = false,
  data,
  port,
  dbPort,
} = argumentsOrExit(usage, () => {
  refuseKeptByNpm('stack', ['json', 'data', 'port', 'db-port']);
  const options = {
    json: { type: 'boolean' },
    data: { type: 'string' },
    port: { type: 'string' },
    'db-port': { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  const { values } = parseArgs({ options });
  if (values.data === '') throw new Error('--data is empty: name a folder.');
  return { ...values, port: readPort('--port', values.port), dbPort: readPort('--db-port', values['db-port']) };
});

await runUntilStopped({
  root: path.join(import.meta.dirname, '..'),
  json,
  links: async (stack) => ({ 'Review page': await reviewLink(stack, 'curator') }),
  async start(say) {
    for (const line of settingWarnings()) console.error(pc.yellow(line));
    const kept = { ...(data && { dataDir: data }), ...(port && { port }), ...(dbPort && { dbPort }) };
    const stack = await startStack({ env: readSettings(), services: startServices, ...kept, ...say });
    tellChangedSettings(settingsFile, say.progress ?? (() => {}));
    return stack;
  },
});
