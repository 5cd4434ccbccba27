// The files that `supabase functions deploy` of a project's folder sends, taken down by a stand-in of the Management API.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startManagementApi, type Upload } from './management-api.ts';

/** Has the supabase CLI in the project deploy its functions, as they are. Resolves to what arrived, by the functions' names. */
export async function deployFunctions(project: string, env: NodeJS.ProcessEnv): Promise<Map<string, Upload>> {
  const token = `sbp_${'0123456789'.repeat(4)}`;
  const api = await startManagementApi('abcdefghijklmnopqrst', token);
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'deployment-'));
  try {
    const profile = path.join(home, 'profile.yaml');
    const lines = ['name: recorded', `api_url: ${api.url}`, `dashboard_url: ${api.url}`, 'project_host: localhost', ''];
    fs.writeFileSync(profile, lines.join('\n'));
    const line = 'npx supabase functions deploy --use-api --yes --agent no --remote=abcdefghijklmnopqrst';
    // Not by spawnSync(): the recorder is in this process.
    const given = { ...env, HOME: home, SUPABASE_PROFILE: profile, SUPABASE_ACCESS_TOKEN: token };
    await promisify(execFile)('sh', ['-c', line], { cwd: project, env: given });
    return new Map([...api.uploads].filter(([name]) => api.deployed.has(name)));
  } finally {
    await api.stop();
    fs.rmSync(home, { recursive: true });
  }
}
