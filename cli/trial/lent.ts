// What the command lends a trial: all that reads files of the package millrace, which @millrace/dev has none of.
import type { connectWhereReached } from '../commands/connect.ts';
import type { initChanges } from '../commands/init.ts';
import type { openDoor } from '../operate/ask-door.ts';
import type { engineUninstall, Manifest } from '../project/shipped.ts';

export interface Lent {
  connectWhereReached: typeof connectWhereReached;
  engineUninstall: typeof engineUninstall;
  initChanges: typeof initChanges;
  manifest: Manifest;
  openDoor: typeof openDoor;
}
