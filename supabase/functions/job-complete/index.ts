import { processEnv } from '../_millrace/settings.ts';
import { serve } from '../_millrace/worker/edge-runtime.ts';
import { answerCallback } from './handler.ts';

serve(answerCallback(processEnv()));
