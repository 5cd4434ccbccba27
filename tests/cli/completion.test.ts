// The scripts of completion, each in its own shell, where that is installed.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { completionOf } from '../../cli/commands/completion.ts';
import { operateEntries } from '../../cli/operate/entries.ts';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'completion-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** A zsh completes at a terminal alone: another types into it, and presses a key that prints the line. */
const typing = `zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell 'PS1=; source FILE; tell() { print -r "<$BUFFER>" }; zle -N tell; bindkey ^O tell; print READY\\!'
zpty -r shell seen $'*READY!\\r*'
zpty -w -n shell $'LINE\\t\\x0f'
zpty -r shell seen '*<npx*>*'
print -r -- "$seen"`;

/** How each shell completes the line and prints what it finds. */
const shells: Record<string, string[]> = {
  bash: [
    'bash',
    '-c',
    `source FILE; COMP_WORDS=(LINE); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _millrace; echo "\${COMPREPLY[*]}"`,
  ],
  zsh: ['zsh', '-f', '-c', typing],
  fish: ['fish', '--no-config', '-c', `source FILE; complete -C 'LINE' | string replace -r '\\t.*' ''`],
  powershell: [
    'pwsh',
    '-c',
    `. FILE; $line = 'LINE'; (TabExpansion2 $line $line.Length).CompletionMatches.CompletionText`,
  ],
};

/** Returns the completed last word of a line; empty where nothing completes it. */
async function completed(shell: string, line: string): Promise<string> {
  const file = path.join(folder, `millrace.${shell === 'powershell' ? 'ps1' : shell}`);
  fs.writeFileSync(file, await completionOf(operateEntries).run([shell]));
  const [program = '', ...args] = shells[shell] ?? [];
  const { stdout, error } = spawnSync(
    program,
    args.map((arg) => arg.replaceAll('FILE', file).replaceAll('LINE', line)),
    { encoding: 'utf8', timeout: 60_000, cwd: folder, env: { PATH: process.env.PATH, HOME: folder, TERM: 'xterm' } },
  );
  if (error) throw error;
  if (shell !== 'zsh') return stdout.trim();
  const became = /<(.*)>/.exec(stripVTControlCharacters(stdout))?.[1]?.trim() ?? '';
  return became === line ? '' : (became.split(' ').at(-1) ?? '');
}

const isMissing = (shell: string) => spawnSync(shells[shell]?.[0] ?? '', ['--version']).error !== undefined;

for (const shell of Object.keys(shells)) {
  test.skipIf(isMissing(shell))(`${shell} completes commands and the options of each by its script`, async () => {
    expect(await completed(shell, 'npx millrace stat')).toBe('status');
    expect(await completed(shell, 'npx millrace dead tickets --rem')).toBe('--remote');
    expect(await completed(shell, 'npx millrace logs 8 --rang')).toBe('');
    expect(await completed(shell, 'npx prettier stat')).toBe('');
  });
}

test('a shell without a script is refused with those that have one', async () => {
  await expect(completionOf(operateEntries).run(['tcsh'])).rejects.toThrow(
    /^Name a shell: bash, zsh, fish or powershell\./,
  );
});
