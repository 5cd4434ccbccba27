import fs from 'node:fs';
import path from 'node:path';
import process from 'node:process';

/** Returns the bytes of a file that the user named. Throws an error that says why it cannot be had, followed by `remedy`. */
export function readFileNamed(file: string, remedy: string): Uint8Array {
  try {
    // npm runs commands in the project's folder, and says here where the user stood.
    return fs.readFileSync(path.resolve(process.env.INIT_CWD ?? '', file));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a folder' : message;
    throw new Error(`${file} cannot be read: ${why}. ${remedy}`);
  }
}
