// A trial waits until a new preview branch answers. The supabase CLI is a script that fails as often as a test says.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { awaitBranch } from '../../cli/trial/await-branch.ts';
import { hostedProject } from '../../cli/trial/hosted-project.ts';

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
