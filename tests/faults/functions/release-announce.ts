import { release } from './pattern-pipelines.ts';
import { serveWitnessedStep } from './witnessed-step.ts';

serveWitnessedStep(release, 'announce');
