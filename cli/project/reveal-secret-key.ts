// A hosted project's secret key, as the supabase CLI tells it to whoever is logged in.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { CommandError } from './command-error.ts';

interface ApiKey {
  type?: string | null;
  name: string;
  api_key?: string | null;
}

/** Asks the supabase CLI for a secret key of a project; '' is the one that the folder `root` is linked to. Throws a CommandError. */
export async function revealSecretKey(remote: string, root: string): Promise<string> {
  const args = ['projects', 'api-keys', '--reveal', '--output', 'json', '--workdir', root];
  const target = remote ? [`--remote=${remote}`] : [];
  const { stdout } = await promisify(execFile)(supabaseIn(root), [...args, ...target]).catch(
    (error: NodeJS.ErrnoException & { stderr?: string }) => {
      if (error.code === 'ENOENT') {
        throw new CommandError(
          'SUPABASE_SECRET_KEY is not set, and the supabase CLI, which would tell it, is not installed: run `npm i -D supabase`.',
        );
      }
      throw new CommandError(
        `SUPABASE_SECRET_KEY is not set, and \`supabase projects api-keys --reveal\` did not tell it: ${(error.stderr || error.message).trim()}`,
      );
    },
  );
  const key = secretKeyIn(stdout);
  if (!key) {
    throw new CommandError('The project has no secret key: make one in the dashboard, or set SUPABASE_SECRET_KEY.');
  }
  return key;
}

/** The secret key among those that the CLI lists, or the older service_role key. */
function secretKeyIn(listed: string): string | undefined {
  const keys = JSON.parse(listed) as ApiKey[];
  const key = keys.find(({ type }) => type === 'secret') ?? keys.find(({ name }) => name === 'service_role');
  return key?.api_key ?? undefined;
}

/** The CLI that the project installed, or the one on the PATH. */
function supabaseIn(root: string): string {
  for (let folder = path.resolve(root); ; folder = path.dirname(folder)) {
    const bin = path.join(folder, 'node_modules', '.bin', 'supabase');
    if (fs.existsSync(bin)) return bin;
    if (path.dirname(folder) === folder) return 'supabase';
  }
}
