import { tracks } from './pattern-pipelines.ts';
import { serveWitnessedStep } from './witnessed-step.ts';

serveWitnessedStep(tracks, 'right');
