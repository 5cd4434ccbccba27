// millrace completion: a script by which a shell completes the commands and their options, from the table of commands.
import { CommandError } from '../command-error.ts';
import { type Command, commonOptions, defineCommand, type Entry } from '../define-command.ts';

const usage = `npx millrace completion bash | zsh | fish | powershell
  Prints a script by which the shell completes the commands of npx millrace and their options. Write it to a file that the
  shell reads when it starts, and again after an upgrade:
    npx millrace completion bash > ~/.millrace.bash && echo 'source ~/.millrace.bash' >> ~/.bashrc
    npx millrace completion zsh > ~/.millrace.zsh && echo 'source ~/.millrace.zsh' >> ~/.zshrc
    npx millrace completion fish > ~/.config/fish/conf.d/millrace.fish
    npx millrace completion powershell >> $PROFILE`;

/** A command as a shell completes it. */
interface Completed {
  name: string;
  summary: string;
  /** The options' names without their dashes. */
  options: string[];
}

const scripts: Record<string, (commands: Completed[]) => string> = { bash, zsh, fish, powershell };

/** Makes the command that completes these entries. */
export function completionOf(entries: Record<string, Entry>): Command {
  return defineCommand({
    usage,
    options: {},
    takesWords: 1,
    run: async ({ words: [shell = ''] }) => {
      if (!Object.hasOwn(scripts, shell))
        throw new CommandError(`Name a shell: bash, zsh, fish or powershell.\n\n${usage}`, 2);
      const commands = await Promise.all(Object.entries(entries).map(completed));
      return (scripts[shell] as (typeof scripts)[string])(commands);
    },
  });
}

/** A command takes the options that its usage names. */
async function completed([name, { summary, load }]: [string, Entry]): Promise<Completed> {
  const named = [...(await load()).usage.matchAll(/--([a-z][a-z-]*)/g)].map(([, option = '']) => option);
  return { name, summary, options: [...new Set([...named, ...Object.keys(commonOptions)])].sort() };
}

const dashed = (options: string[]) => options.map((option) => `--${option}`).join(' ');

/** Completes behind npx too; where another package is run, the shell goes on with the names of files. */
function bash(commands: Completed[]): string {
  const cases = commands.map(({ name, options }) => `    ${name}) words="${dashed(options)}" ;;`);
  return `_millrace() {
  local word seen= command= words=
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:0:$COMP_CWORD}"; do
    if [ -z "$seen" ]; then case $word in millrace | */millrace | millrace@*) seen=1 ;; esac
    elif [ -z "$command" ]; then case $word in -*) ;; *) command=$word ;; esac
    fi
  done
  [ -n "$seen" ] || return 0
  case $command in
    '') words="${commands.map(({ name }) => name).join(' ')} --help --version" ;;
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _millrace millrace npx`;
}

function zsh(commands: Completed[]): string {
  return `autoload -Uz compinit bashcompinit
whence compdef > /dev/null || compinit
bashcompinit
${bash(commands)}`;
}

function fish(commands: Completed[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const lines = commands.flatMap(({ name, summary, options }) => [
    `complete -c npx -n '__millrace_at' -f -a ${name} -d ${quoted(summary)}`,
    ...options.map((option) => `complete -c npx -n '__millrace_at ${name}' -l ${option}`),
  ]);
  return `# Whether the words so far are npx millrace alone, or with this command behind.
function __millrace_at
  set -l words (commandline -opc)
  test "$words[2]" = millrace; or return 1
  if test (count $argv) -eq 0
    test (count $words) -eq 2
  else
    test "$words[3]" = $argv[1]
  end
end
${lines.join('\n')}`;
}

/** Completes the word at the cursor; the words before it have ended. */
function powershell(commands: Completed[]): string {
  const list = (words: string[]) => words.map((word) => `'${word}'`).join(', ');
  const cases = commands.map(({ name, options }) => `    '${name}' { ${list(options.map((one) => `--${one}`))} }`);
  return `Register-ArgumentCompleter -Native -CommandName npx, millrace -ScriptBlock {
  param($word, $line, $cursor)
  $done = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
  if ($done[0] -eq 'npx') { $done = @($done | Select-Object -Skip 1) }
  if ("$($done[0])" -notmatch '^millrace(@.*)?$') { return }
  $command = $done | Select-Object -Skip 1 | Where-Object { $_ -notlike '-*' } | Select-Object -First 1
  $words = switch ("$command") {
    '' { ${list([...commands.map(({ name }) => name), '--help', '--version'])} }
${cases.join('\n')}
  }
  $words | Where-Object { $_ -like "$word*" }
}`;
}
