// Where a stack runs: a note in the project's folder, by which commands find a running stack.
import fs from 'node:fs';
import path from 'node:path';

export interface RunningStack {
  apiUrl: string;
  secretKey: string;
  dbUrl: string;
  /** The process that runs it. */
  pid: number;
}

/** In a folder that git leaves alone in every project that the supabase CLI made. */
const noteIn = (project: string) => path.join(project, 'supabase', '.temp', 'millrace-stack.json');

/**
 * Notes that this process runs a stack over the project in `project`. Returns a function that removes the note, and
 * restores that of an earlier stack which still runs there.
 */
export function noteRunningStack(project: string, { apiUrl, secretKey, dbUrl }: Omit<RunningStack, 'pid'>): () => void {
  const file = noteIn(project);
  const before = readNote(file);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  writeNote(file, { apiUrl, secretKey, dbUrl, pid: process.pid });
  return () => {
    if (readNote(file)?.pid !== process.pid) return;
    if (before && before.pid !== process.pid && isAlive(before.pid)) writeNote(file, before);
    else fs.rmSync(file, { force: true });
  };
}

/** Returns the options by which a command of the supabase CLI reaches the database of a running stack. */
export const targetOf = ({ dbUrl }: Pick<RunningStack, 'dbUrl'>) => `--yes --remote='${dbUrl}?sslmode=disable'`;

/** Returns the command that brings a project's further migrations there. */
export const pushCommand = (stack: Pick<RunningStack, 'dbUrl'>) => `npx supabase db push ${targetOf(stack)}`;

function writeNote(file: string, note: RunningStack): void {
  // The key is for nobody else on this machine, in a file that was there before either.
  fs.rmSync(file, { force: true });
  fs.writeFileSync(file, JSON.stringify(note), { mode: 0o600 });
}

/** Returns the stack that runs over a project, where there is one. */
export function findRunningStack(project: string): RunningStack | undefined {
  const found = readNote(noteIn(project));
  return found && isAlive(found.pid) ? found : undefined;
}

function readNote(file: string): RunningStack | undefined {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
