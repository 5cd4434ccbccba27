// The function millrace without callbacks: it answers polls, and 404 to anything else.

import { serve, waitUntil } from '../../../supabase/functions/_millrace/edge-runtime.ts';
import { answerPollWakeUp } from '../../../supabase/functions/_millrace/jobs/poll-jobs.ts';
import { refuse } from '../../../supabase/functions/_millrace/refuse.ts';
import { processEnv } from '../../../supabase/functions/_millrace/settings.ts';

const poll = answerPollWakeUp(processEnv(), waitUntil);

serve(async (request) => {
  const isPoll = new URL(request.url).pathname.endsWith('/poll');
  return isPoll ? poll(request) : refuse(404, 'unknown_route', 'Only polls are answered here.');
});
