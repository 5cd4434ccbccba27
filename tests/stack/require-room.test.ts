import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { requireRoom } from '../../local/platform/require-room.ts';

it('the error names the folder, the free space and the needed space, also where the folder is yet to be made', () => {
  const folder = path.join(os.tmpdir(), 'not', 'made', 'yet');
  const { bavail, bsize } = fs.statfsSync(os.tmpdir());
  expect(() => requireRoom(folder, bavail * bsize * 2 + 1e9, 'name another')).toThrow(
    /^No space is left in \S+\/not\/made\/yet: \d+ MB are free there, \d+ MB are needed\. Make room, or name another\.$/,
  );
  expect(() => requireRoom(folder, 1, 'name another')).not.toThrow();
});
