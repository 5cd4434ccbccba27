import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runNode } from './run-command.ts';

let folder: string;

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'count-test-'));
});
afterEach(() => {
  fs.rmSync(folder, { recursive: true, force: true });
});

const file = (status: string, ...tests: string[]) => ({
  status,
  name: path.resolve('tests/a.test.ts'),
  startTime: 1_000,
  endTime: 3_000,
  assertionResults: tests.map((test) => ({
    status: test,
    fullName: ' a rule',
    failureMessages: [] as string[],
  })),
});

/** The closing lines and exit code of continuous integration after these outcomes. */
async function count(testResults: ReturnType<typeof file>[] | null, checkStatus: number, testStatus: number) {
  const report = path.join(folder, 'tests.json');
  fs.rmSync(report, { force: true });
  const tests = testResults?.flatMap((result) => result.assertionResults.map(({ status }) => status)) ?? [];
  const numbers = {
    numPassedTests: tests.filter((status) => status === 'passed').length,
    numFailedTests: tests.filter((status) => status === 'failed').length,
  };
  if (testResults) fs.writeFileSync(report, JSON.stringify({ ...numbers, testResults }));
  const { code, stdout } = await runNode(['.ci/count.mjs', report, String(checkStatus), String(testStatus)]);
  return [stdout, code];
}

it('the count names the files that took long, the longest first', async () => {
  const report = path.join(folder, 'tests.json');
  const [short, long, longest] = [file('passed', 'passed'), file('passed', 'passed'), file('passed', 'passed')];
  Object.assign(long as object, { endTime: 21_000 });
  Object.assign(longest as object, { name: path.resolve('tests/b.test.ts'), endTime: 31_000 });
  const testResults = [short, long, longest];
  fs.writeFileSync(report, JSON.stringify({ numPassedTests: 3, numFailedTests: 0, testResults }));
  const { stdout } = await runNode(['.ci/count.mjs', report, '0', '0']);
  expect(stdout).toMatch(
    `30 s: ${path.join('tests', 'b.test.ts')}\n20 s: ${path.join('tests', 'a.test.ts')}\n4 passed`,
  );
});

it('counts the tests, and the checks as one', async () => {
  expect(await count([file('passed', 'passed', 'passed', 'skipped')], 0, 0)).toEqual(['3 passed, 0 failed\n', 0]);
  expect(await count([file('passed', 'passed')], 1, 0)).toEqual(['1 passed, 1 failed\n', 1]);
  expect(await count([file('failed', 'passed', 'failed')], 0, 1)).toEqual(['2 passed, 1 failed\n', 1]);
});

it('counts as a failure what keeps tests from running', async () => {
  expect(await count([file('failed'), file('passed', 'passed')], 0, 1)).toEqual(['2 passed, 1 failed\n', 1]);
  expect(await count([file('passed', 'passed')], 0, 1)).toEqual(['2 passed, 1 failed\n', 1]);
  expect(await count(null, 0, 1)).toEqual(['1 passed, 1 failed\n', 1]);
});

it('the count names tests that passed at their second try', async () => {
  const report = file('passed', 'passed', 'passed');
  report.assertionResults[0]?.failureMessages.push('AssertionError: it was late\n    at some place');
  expect(await count([report], 0, 0)).toEqual([
    'passed at its second try: a rule: AssertionError: it was late\n3 passed, 0 failed\n',
    0,
  ]);
});
