import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkStageCode } from '../../tools/check/stage-code.ts';
import { textCuts } from '../../tools/check/text-cuts.ts';
import { projectFolder } from './run-command.ts';

/** The faults that the check finds in a project whose only function has this call of defineStage(). */
async function checked(code: string): Promise<string> {
  await mkdir(path.join(projectFolder, '.cache'), { recursive: true });
  const folder = await mkdtemp(path.join(projectFolder, '.cache', 'stages-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(path.join(folder, 'mails-send'));
  const runtime = path.join(projectFolder, 'supabase', 'functions', '_millrace');
  await writeFile(
    path.join(folder, 'mails-send', 'handler.ts'),
    `import { z } from 'zod';
    import { definePipeline } from '${runtime}/define/define-pipeline.ts';
    import { finishAnswer } from '${runtime}/model/model.ts';
    import { jobService } from '${runtime}/jobs/job-service.ts';
    import { defineStage, waiting } from '${runtime}/stage/stage.ts';
    const pipeline = definePipeline({
      name: 'mails',
      entity: { table: 'public.mails', key: 'id', projection: 'none' },
      stages: { send: {
        kind: 'external', function: 'mails-send', batchSize: 1, maxWorkers: 1, leaseSeconds: 60, timeoutSeconds: 30,
        retry: { maxAttempts: 1, backoff: { kind: 'list', seconds: [1] } },
        completion: { callback: true, pollSeconds: 5, deadlineSeconds: 600 },
      } },
    });
    const mailer = jobService({ name: 'mailer' });
    const base = {
      pipeline, stage: 'send', input: z.object({}), output: z.object({}), handler: () => waiting(mailer, 'job-1'),
    };
    const finish = () => ({});
    export const send = defineStage({ ...base, ${code} });`,
  );
  return checkStageCode(folder);
}

test('a waiting stage with a service and a finish function passes', async () => {
  expect(await checked('services: [mailer], finish')).toBe('');
});

test.each(['services: [mailer]', 'finish', 'services: [], finish'])(
  'a waiting stage that nobody could finish is refused, with its file and the remedy: %s',
  async (code) => {
    expect(await checked(code)).toMatch(
      /^supabase\/functions\/mails-send\/handler\.ts: Stage send of pipeline mails .*services .* finish function/,
    );
  },
);

test('a stage that is to be polled, of a service that cannot be asked, is refused', async () => {
  const found = await checked('services: [{ ...mailer, poll: undefined }], finish');
  expect(found).toMatch(
    /^Stage send of pipeline mails is to be polled every 5 s, .* \(mailer\) .* pollSeconds: null\.$/,
  );
});

test('a text that is cut without regard to its characters is found, and no list, digest or part between two places', async () => {
  const folder = await mkdtemp(path.join(projectFolder, '.cache', 'cuts-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const fine = `names.slice(0, mostNames); digest('hex').slice(0, 40); text.slice(0, end); text.slice(at, at + 200); rows.slice(0, 2);`;
  const cuts = [
    'title.slice(0, longestTitle)',
    'text.slice(0, 2_000)',
    'a.substring(0, 80)',
    'b.slice(0, LONGEST_B - 1)',
    'page.slice(0, share)',
    '`$' + '{title}: $' + '{page}`.slice(0, room)',
  ];
  await writeFile(path.join(folder, 'handler.ts'), [fine, ...cuts].join('\n'));
  const found = textCuts(folder).split('\n');
  expect(found.map((line) => line.split(': ')[0])).toEqual([2, 3, 4, 5, 6, 7].map((line) => `handler.ts:${line}`));
  expect(found[0]).toContain('call excerpt()');
  expect(textCuts(path.join(projectFolder, 'supabase', 'functions'))).toBe('');
});

test('a stage whose answer no model can give is refused with its file, the field and the remedy', async () => {
  const form = `z.object({ tags: z.record(z.string(), z.string()) })`;
  expect(await checked(`services: [mailer], finish: finishAnswer(${form})`)).toMatch(
    /^supabase\/functions\/mails-send\/handler\.ts: .* the field tags is a z\.record\(\).*: write z\.array/,
  );
});
