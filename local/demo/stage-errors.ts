// The first error of each stage, as it occurs. The work goes on meanwhile, unless what is wrong is a setting.
import type pg from 'pg';

/** How many characters of an error are printed: the run's timeline has all of it. */
const longest = 200;

interface FirstError {
  stage: string;
  pipeline: string;
  code: string;
  message: string;
  /** Whether the stage has ever completed anything. */
  worked: boolean;
}

/**
 * Resolves to a line for each stage that has failed for the first time since the last call. Throws an error that names the
 * setting where a stage cannot work: it is misconfigured, or its service was never reached at the address that was set.
 */
export type NewErrors = () => Promise<string[]>;

/** Looks for errors at the database of `client`; addresses that `env` gives settings stand beside the settings' names. */
export function newErrors(client: pg.Client, env: Record<string, string>): NewErrors {
  const told = new Set<string>();
  return async () => {
    const lines: string[] = [];
    for (const error of await readErrors(client)) {
      const { pipeline, stage, code } = error;
      const message = withAddresses(error.message, env);
      const isMisplaced = /_unreachable$/.test(code) && !error.worked && message !== error.message;
      if (code === 'misconfigured' || isMisplaced) {
        throw new Error(
          `Stage ${stage} of ${pipeline} cannot work: ${message} (${code})\n` +
            'The demo ends here: correct the setting, here or in .env, and start it again.',
        );
      }
      const name = `${pipeline}.${stage}`;
      if (!told.has(name)) lines.push(`first error at ${stage}: ${cut(message)} (${code})`);
      told.add(name);
    }
    return lines;
  };
}

/** Resolves to the first error of each stage, or the first that names a setting. */
async function readErrors(client: pg.Client): Promise<FirstError[]> {
  const { rows } = await client.query<FirstError>(
    `select distinct on (a.stage_id) s.name as stage, p.name as pipeline, a.error ->> 'code' as code,
       regexp_replace(concat_ws(' ', a.error ->> 'message', a.error ->> 'detail'), '\\s+', ' ', 'g') as message,
       exists (select from millrace.attempts c where c.stage_id = a.stage_id and c.state = 'completed') as worked
     from millrace.attempts a
     join millrace.stages s on s.id = a.stage_id
     join millrace.pipelines p on p.id = s.pipeline_id
     where a.state = 'failed'
     order by a.stage_id, (a.error ->> 'code') = 'misconfigured' desc, a.id`,
  );
  return rows;
}

const cut = (text: string) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text);

function withAddresses(message: string, env: Record<string, string>): string {
  return message.replace(/\b[A-Z][A-Z0-9_]*_URL\b/g, (name) => (env[name] ? `${name} (${env[name]})` : name));
}
