// Requests of the page to the Data API. Row-level security decides which leads a signed-in person may see and start.
import { callProject } from '../base/session.ts';

export interface Lead {
  id: string;
  email: string;
  company_url: string;
  /** Null until the stage that writes it has completed; so are the fields of the message. */
  company: string | null;
  subject: string | null;
  body: string | null;
  call_to_action: string | null;
}

/** As many leads are on the page. */
export const mostLeads = 100;

const columns = [
  'id,email,company_url',
  'company:intel_result->>company_name',
  'subject:messaging_result->>subject',
  'body:messaging_result->>body',
  'call_to_action:messaging_result->>call_to_action',
];

/** The leads in the order in which they were entered. */
export async function fetchLeads(): Promise<Lead[]> {
  const query = { select: columns.join(), order: 'created_at,email,company_url,id', limit: String(mostLeads) };
  return (await callProject(`/rest/v1/leads?${new URLSearchParams(query)}`)) as Lead[];
}

/** Starts a lead's pipeline as anybody does: by one write to its row. */
export async function startLead(id: string): Promise<void> {
  await callProject(`/rest/v1/leads?id=eq.${id}`, { method: 'PATCH', body: { scrape_status: 'queued' } });
}
