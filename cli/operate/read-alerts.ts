// Reads alerts from the API for operators, and adds to each the sentence that its facts make.
import type { Alert } from '../../operators/answers.ts';
import { playbookOf, sayStanding } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { Door } from './ask-door.ts';
import { readLists } from './say.ts';

export type ToldAlert = Alert & { message: string; playbook: string };

interface Answer {
  alerts: Alert[];
  next: string | null;
  /** The folder of the playbooks. */
  playbooks_url?: string;
}

export async function readAlerts(
  door: Door,
  query: Record<string, unknown>,
): Promise<{ alerts: ToldAlert[]; next: string | null }> {
  const { alerts, next, playbooks_url } = await readLists<Answer>(door, 'alerts', query, 'alerts');
  const told = (alert: Alert) => ({
    ...alert,
    message: sayStanding(alert),
    playbook: playbookOf(alert, playbooks_url),
  });
  return { alerts: alerts.map(told), next };
}
