import { serve, waitUntil } from '../_shared/edge-runtime.ts';
import { processEnv } from '../_shared/settings.ts';
import { answerPollDoorbell } from './handler.ts';

serve(answerPollDoorbell(processEnv(), waitUntil));
