import type { FinishContext } from '../_millrace/mod.ts';
import type { FormerAnswers } from '../_millrace/model/former-answers.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

/** The model's former answers about links. All links belong to one owner. */
export function linkAnswers({ env, signal }: Pick<FinishContext, 'env' | 'signal'>): FormerAnswers {
  return {
    owner: null,
    async find(key) {
      const { rows } = projectClient(env);
      const kept = rows.from('link_answers').select('answer').eq('key', key);
      const { data, error, status } = await kept.abortSignal(signal).maybeSingle();
      if (error) throw projectError(status, error, 'Looking for a former answer');
      return data?.answer ?? null;
    },
    async keep(key, answer) {
      const { rows } = projectClient(env);
      const row = { key, answer };
      const { error, status } = await rows
        .from('link_answers')
        .upsert(row, { ignoreDuplicates: true })
        .abortSignal(signal);
      if (error) throw projectError(status, error, 'Keeping an answer');
    },
  };
}
