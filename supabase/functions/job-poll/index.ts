import { processEnv } from '../_millrace/settings.ts';
import { serve, waitUntil } from '../_millrace/worker/edge-runtime.ts';
import { answerPollDoorbell } from './handler.ts';

serve(answerPollDoorbell(processEnv(), waitUntil));
