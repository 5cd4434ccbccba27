// Lets a project's own files run in this process, as they do when they are loaded: they neither speak for the command nor end it.

let running = 0;
let hasRun = false;
const own = { write: process.stdout.write, exit: process.exit };

/** Whether files of the project have run, which may have left something behind that keeps this process alive, such as a timer. */
export const hasRunForeign = () => hasRun;

/**
 * Calls `run`, which loads files of the project. Sends what they print to standard error, since a program reads the
 * command's own answer from standard output. Throws where they would end the process, or an await at their top never
 * settles.
 */
export async function runForeign<Result>(run: () => Promise<Result>): Promise<Result> {
  hasRun = true;
  running += 1;
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof own.write;
  process.exit = (code) => {
    throw new Error(`process.exit(${code ?? ''}) would end this command: take it out, or throw an error in its place.`);
  };
  let never = () => {};
  const stuck = new Promise<never>((_, reject) => {
    never = () =>
      reject(new Error('An await at the top of a file waits for what never comes: move it into a function.'));
    process.once('beforeExit', never);
  });
  try {
    return await Promise.race([run(), stuck]);
  } finally {
    process.off('beforeExit', never);
    running -= 1;
    // Restores the process only after the last of several calls side by side.
    if (running === 0) Object.assign(process, { exit: own.exit }).stdout.write = own.write;
  }
}
