// The function of Supabase's guide: it takes the jobs of its request one after the other and takes each from the queue.
import { serve } from '../../../../../supabase/functions/_millrace/edge-runtime.ts';

const { SUPABASE_URL: url, SUPABASE_SECRET_KEYS: keys = '{}' } = process.env;
const headers = { apikey: String(JSON.parse(keys).default), 'content-type': 'application/json' };

interface Job {
  job_id: number;
  wait_ms: number;
}

serve(async (request) => {
  const jobs = (await request.json()) as Job[];
  for (const { job_id, wait_ms } of jobs) {
    if (wait_ms > 0) await new Promise((resolve) => setTimeout(resolve, wait_ms));
    const body = JSON.stringify({ p_job: job_id });
    const answer = await fetch(`${url}/rest/v1/rpc/guide_done`, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(`A job stays in the queue: ${answer.status} ${await answer.text()}`);
    await answer.body?.cancel();
  }
  return Response.json({ completed: jobs.length }, { status: 207 });
});
