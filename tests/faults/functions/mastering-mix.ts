import { mastering } from './pattern-pipelines.ts';
import { serveWitnessedStep } from './witnessed-step.ts';

serveWitnessedStep(mastering, 'mix');
