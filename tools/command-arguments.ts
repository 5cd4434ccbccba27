// Reading of arguments, the same for all commands.

/**
 * Returns what `read` makes of the arguments. Ends the program instead at --help (the usage, exit code 0) and when `read`
 * throws (one sentence and the usage, exit code 2).
 */
export function argumentsOrExit<Given extends { help?: boolean }>(usage: string, read: () => Given): Given {
  let given: Given;
  try {
    given = read();
  } catch (error) {
    console.error(`${sentence(error as NodeJS.ErrnoException)}\n\n${usage}`);
    return process.exit(2);
  }
  if (given.help) {
    console.log(usage);
    process.exit(0);
  }
  return given;
}

/**
 * Throws when npm kept one of these options for itself, as it does where the "--" before them was forgotten: the command
 * would run as if nothing had been asked. `environment` is where npm leaves what it kept.
 */
export function refuseKeptByNpm(
  command: string,
  options: string[],
  environment: NodeJS.ProcessEnv = process.env,
): void {
  const kept = options.find((option) => environment[`npm_config_${option.replaceAll('-', '_')}`]);
  if (kept)
    throw new Error(`npm kept --${kept} for itself: write "npm run ${command} -- --${kept}", with "--" before it.`);
}

/** parseArgs follows up what is wrong with advice that fits no command of npm. */
function sentence({ code, message }: NodeJS.ErrnoException): string {
  return code?.startsWith('ERR_PARSE_ARGS') ? `${message.split(/\.\s/)[0]?.replace(/\.$/, '')}.` : message;
}
