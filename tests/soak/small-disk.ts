// A small file system in memory on which a campaign's Postgres lies alone, so that its disk is full when a campaign says so and
// no other is.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startWatchdog } from '../../local/platform/watchdog.ts';

const megabyte = 1024 * 1024;
const size = 600 * megabyte;

export class SmallDisk {
  readonly folder: string;
  readonly #watchdog = startWatchdog();

  private constructor(folder: string) {
    this.folder = folder;
    this.#watchdog.removeLater(folder);
  }

  /** Mounts it. Answers in a word why not, where this process may not. */
  static mount(): SmallDisk | string {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0711`, 'tmpfs', folder], { stdio: 'pipe' });
      return new SmallDisk(folder);
    } catch (error) {
      fs.rmdirSync(folder);
      return (error as Error).message.trim().split('\n').at(-1) ?? 'mount failed';
    }
  }

  /** Bytes that are free. */
  get free(): number {
    const { bavail, bsize } = fs.statfsSync(this.folder);
    return bavail * bsize;
  }

  /** Takes all room but so many bytes. */
  fill(left: number): void {
    const file = fs.openSync(this.#ballast, 'a');
    try {
      for (let block = megabyte; block >= 4096; block /= 4) {
        const zeros = Buffer.alloc(block);
        while (this.free - left >= block) fs.writeSync(file, zeros);
      }
    } catch (error) {
      // Postgres took what was left meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      fs.closeSync(file);
    }
  }

  giveBack(): void {
    fs.rmSync(this.#ballast, { force: true });
  }

  /** To be called when nobody is on it any more. */
  unmount(): void {
    execFileSync('umount', ['-l', this.folder], { stdio: 'pipe' });
    fs.rmdirSync(this.folder);
    this.#watchdog.dismiss();
  }

  get #ballast(): string {
    return path.join(this.folder, 'ballast');
  }
}
