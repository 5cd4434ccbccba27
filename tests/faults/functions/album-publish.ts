import { album } from './pattern-pipelines.ts';
import { serveWitnessedStep } from './witnessed-step.ts';

serveWitnessedStep(album, 'publish');
