// The screens there are; those with a key stand in the navigation, and `g` and the key lead there.
import type { ComponentType } from 'preact';
import type { Route } from '../base/route.ts';
import { Alerts } from './alerts.tsx';
import { Bulk } from './bulk.tsx';
import { Costs } from './costs.tsx';
import { DeadLetters } from './dead.tsx';
import { Functions } from './functions.tsx';
import { Journal } from './journal.tsx';
import { Limits } from './limits.tsx';
import { Overview } from './overview.tsx';
import { Pipeline } from './pipeline.tsx';
import { Run } from './run.tsx';
import { Runs } from './runs.tsx';
import { Settings } from './settings.tsx';
import { Status } from './status.tsx';

interface Screen {
  title: string;
  /** The word before the name of the screen's one subject; left out, the title. */
  titleOf?: string;
  key?: string;
  draw: ComponentType<Route>;
}

export const screens: Record<string, Screen> = {
  overview: { title: 'Overview', key: 'o', draw: Overview },
  runs: { title: 'Runs', key: 'r', draw: Runs },
  dead: { title: 'Dead letters', key: 'd', draw: DeadLetters },
  status: { title: 'Status', titleOf: 'Status of', key: 's', draw: Status },
  functions: { title: 'Functions', key: 'f', draw: Functions },
  costs: { title: 'Costs', key: 'c', draw: Costs },
  limits: { title: 'Limits', key: 'l', draw: Limits },
  alerts: { title: 'Alerts', key: 'a', draw: Alerts },
  journal: { title: 'Journal', key: 'j', draw: Journal },
  settings: { title: 'Settings', titleOf: 'Versions of', key: 'e', draw: Settings },
  pipeline: { title: 'Pipeline', draw: Pipeline },
  run: { title: 'Run', draw: Run },
  bulk: { title: 'Bulk', draw: Bulk },
};
