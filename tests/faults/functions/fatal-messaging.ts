// The stage messaging with a fault: one lead ends the process of the function that works on it.
import process from 'node:process';
import { serveStage } from '../../../supabase/functions/_shared/serve-stage.ts';
import { messaging } from '../../../supabase/functions/leads-messaging/handler.ts';

serveStage({
  ...messaging,
  handler(input, context) {
    if (context.entityId === process.env.FATAL_LEAD) process.exit(1);
    return messaging.handler(input, context);
  },
});
