// Counts what passed and failed: node .ci/count.mjs <Vitest's JSON report> <exit code of check> <exit code of the tests>
// Prints the files that took long and the closing line of .ci/run, and exits with 1 on any failure.
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [report, checkStatus, testStatus] = process.argv.slice(2);

/** What Vitest reports; a file that broke before its tests ran counts as one failure, as does a run without a report. */
function countTests() {
  if (!existsSync(report)) return { passed: 0, failed: 1 };
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const broken = testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  for (const file of testResults) file.assertionResults.forEach(nameSecondTry);
  nameLongFiles(testResults);
  const failed = numFailedTests + broken.length;
  // Errors outside of any test fail the run without failing a test.
  return { passed: numPassedTests, failed: failed === 0 && testStatus !== '0' ? 1 : failed };
}

/** A test that passed with something to say about a failure passed at its second try. */
function nameSecondTry({ status, fullName, failureMessages }) {
  if (status !== 'passed' || failureMessages.length === 0) return;
  console.log(`passed at its second try: ${fullName.trim()}: ${failureMessages[0].split('\n')[0]}`);
}

/** Files whose tests took more than 15 s, longest first. What they share is made before: no file of the report has it. */
function nameLongFiles(testResults) {
  const files = testResults.map(({ name, startTime, endTime }) => {
    return { name: relative(process.cwd(), name), seconds: Math.round((endTime - startTime) / 1000) };
  });
  for (const { name, seconds } of files.sort((a, b) => b.seconds - a.seconds)) {
    if (seconds > 15) console.log(`${seconds} s: ${name}`);
  }
}

const tests = countTests();
const checked = checkStatus === '0';
const passed = tests.passed + (checked ? 1 : 0);
const failed = tests.failed + (checked ? 0 : 1);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
