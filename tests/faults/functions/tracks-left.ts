import process from 'node:process';
import { tracks } from './pattern-pipelines.ts';
import { serveWitnessedStep } from './witnessed-step.ts';

// A way of its own to the project, so that a test can tell its calls from those of tracks-right.
process.env.SUPABASE_URL = process.env.LEFT_PROXY_URL;
serveWitnessedStep(tracks, 'left');
