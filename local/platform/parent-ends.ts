const lookEveryMs = 500;

/** Calls `end` when the process that started this one ends, where that was npm: by a shell, which ends with npm but hands no signal on. */
export function whenNpmEnds(end: () => void): void {
  if (!process.env.npm_command) return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && end(), lookEveryMs).unref();
}
