// A trial's calls of the supabase CLI, and its wait for a new preview branch, for which a script that fails takes the CLI's place.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { awaitBranch } from '../../cli/trial/await-branch.ts';
import { hostedProject } from '../../cli/trial/hosted-project.ts';
import { startManagementApi } from '../support/cli/management-api.ts';
import { projectFolder } from './run-command.ts';

/** A branch whose first calls fail, and a clock that passes by the pauses alone. */
function branchAfter(failures: number) {
  const from = fs.mkdtempSync(path.join(os.tmpdir(), 'branch-'));
  onTestFinished(() => fs.rmSync(from, { recursive: true }));
  const bin = path.join(from, 'node_modules', '.bin');
  fs.mkdirSync(bin, { recursive: true });
  const calls = path.join(from, 'calls');
  fs.writeFileSync(
    path.join(bin, 'supabase'),
    `#!/bin/sh
echo "$1 $2" >> ${calls}
if [ $(wc -l < ${calls}) -le ${failures} ]; then echo 'the project is coming up' >&2; exit 1; fi
echo '[]'
`,
    { mode: 0o755 },
  );
  let time = 0;
  const said: string[] = [];
  const waiting = {
    say: (line: string) => void said.push(line),
    now: () => time,
    pause: async (ms: number) => {
      time += ms;
    },
  };
  const wait = awaitBranch(hostedProject('abcdefghijklmnopqrst', { from }), waiting);
  return { wait, said, calls: () => fs.readFileSync(calls, 'utf8').trim().split('\n') };
}

test('a branch that comes up is waited for, with a message each ten seconds', async () => {
  const { wait, said, calls } = branchAfter(2);
  await wait;
  expect(said).toEqual([0, 10].map((s) => `the preview branch is not ready after ${s} s, waits`));
  expect(calls()).toEqual(['db query', 'db query', 'db query', 'functions list']);
});

test('a branch that never comes up ends the wait after four minutes, with what was last said', async () => {
  const { wait, said } = branchAfter(1000);
  await expect(wait).rejects.toThrow(
    'The preview branch was not ready after 4 minutes: `supabase db query` failed: the project is coming up',
  );
  expect(said).toHaveLength(24);
});

test('a trial reads what the CLI itself prints of branches, settings and functions', async () => {
  const [reference, token] = ['abcdefghijklmnopqrst', `sbp_${'0123456789'.repeat(4)}`];
  const api = await startManagementApi(reference, token);
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'branch-'));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    fs.rmSync(home, { recursive: true });
    await api.stop();
  });
  const profile = path.join(home, 'profile.yaml');
  const lines = ['name: recorded', `api_url: ${api.url}`, `dashboard_url: ${api.url}`, 'project_host: localhost', ''];
  fs.writeFileSync(profile, lines.join('\n'));
  const env = { HOME: home, SUPABASE_PROFILE: profile, SUPABASE_ACCESS_TOKEN: token, DO_NOT_TRACK: '1' };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const project = hostedProject(reference, { from: projectFolder });

  expect(await project.createBranch('millrace-trial')).toBe(api.branches.get('millrace-trial'));
  await project.deleteBranch('millrace-trial');
  expect(api.branches.has('millrace-trial')).toBe(false);

  const settings = { LLM_MODEL: 'trial', LLM_URL: 'https://a.example/v1?b=c' };
  await project.setSecrets(settings);
  expect(Object.fromEntries(api.secrets)).toEqual(settings);
  expect(await project.secrets(), 'without those of the platform').toEqual(['LLM_MODEL', 'LLM_URL']);
  await project.unsetSecrets(['LLM_MODEL', 'LLM_URL']);
  expect(api.secrets.size).toBe(0);

  api.deployed.add('trial-read');
  expect(await project.functions()).toEqual(['trial-read']);
  await project.deleteFunction('trial-read');
  expect(api.deployed.size).toBe(0);
});
