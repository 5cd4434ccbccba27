// Alerts as the door answers them, each with the sentence that its facts make.
import type { Alert } from '../../pages/operate/answers.ts';
import { playbookOf, sayStanding } from '../../supabase/functions/_millrace/alerts/say-alert.ts';
import type { Door } from './ask-door.ts';
import { readLists } from './say.ts';

export type ToldAlert = Alert & { message: string };

export async function readAlerts(
  door: Door,
  query: Record<string, unknown>,
): Promise<{ alerts: ToldAlert[]; next: string | null }> {
  const { alerts, next } = await readLists<{ alerts: Alert[]; next: string | null }>(door, 'alerts', query, 'alerts');
  return {
    alerts: alerts.map((alert) => ({ ...alert, message: sayStanding(alert), playbook: playbookOf(alert) })),
    next,
  };
}
