// Reads alerts from the API for operators, and adds to each the sentence that its facts make.
import type { Alert } from '../../operators/answers.ts';
import { describeAlert, playbookOf } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { Api } from './ask-api.ts';
import { readLists } from './say.ts';

export type DescribedAlert = Alert & { message: string; playbook: string };

interface Answer {
  alerts: Alert[];
  next: string | null;
  /** The folder of the playbooks. */
  playbooks_url?: string;
}

export async function readAlerts(
  api: Api,
  query: Record<string, unknown>,
): Promise<{ alerts: DescribedAlert[]; next: string | null }> {
  const { alerts, next, playbooks_url } = await readLists<Answer>(api, 'alerts', query, 'alerts');
  const told = (alert: Alert) => ({
    ...alert,
    message: describeAlert(alert),
    playbook: playbookOf(alert, playbooks_url),
  });
  return { alerts: alerts.map(told), next };
}
