import { serve } from '../_shared/edge-runtime.ts';
import { processEnv } from '../_shared/settings.ts';
import { answerCallback } from './handler.ts';

serve(answerCallback(processEnv()));
