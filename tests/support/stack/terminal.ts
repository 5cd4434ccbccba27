// A real terminal for a command: a pty of a size, by script(1), which every Debian has.
import { execFileSync, spawn } from 'node:child_process';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..', '..', '..');

export interface Shown {
  code: number | null;
  /** All that was written, escape sequences included. */
  text: string;
  /** The same as a person reads it, line by line. */
  lines: string[];
}

export interface TerminalOptions {
  columns?: number;
  rows?: number;
  env?: Record<string, string>;
  /** The typed text, or the size that the window gets, each once the text that it waits for has come. */
  types?: [waitsFor: RegExp | string, typed: string | { columns: number; rows: number }][];
  /** The commands that a shell runs where the command is stopped, before it takes it up again. */
  whileStopped?: string;
}

/** The sequences that the project itself writes: colours, the other screen, the cursor, and what erases. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters in question
const own = /\u001b\[(?:[0-9;]*m|\?(?:1049|25)[hl]|[HJK])/g;

/** The rest of a text without the sequences that the project writes. */
export const withoutOwn = (text: string) => text.replace(own, '');

/** Does what a person does who drags a window's corner; the system tells the command by SIGWINCH. */
function resize(tty: string, { columns, rows }: { columns: number; rows: number }): void {
  execFileSync('stty', ['-F', tty, 'cols', String(columns), 'rows', String(rows)]);
}

/** Runs Node with these arguments in a terminal until it ends. */
export function inTerminal(args: string[], options: TerminalOptions = {}): Promise<Shown> {
  const { columns = 100, rows = 40, env = {}, types = [], whileStopped } = options;
  const quoted = args.map((arg) => `'${arg.replaceAll("'", `'\\''`)}'`).join(' ');
  // The mode that the terminal is set to must be the same afterwards.
  const command = `tty; stty cols ${columns} rows ${rows}; before=$(stty -g); trap : INT${whileStopped === undefined ? '' : '; set -m'}
    '${process.execPath}' ${quoted}${whileStopped === undefined ? '' : `; ${whileStopped}; fg`}; code=$?
    [ "$before" = "$(stty -g)" ] || echo THE TERMINAL IS NOT AS IT WAS
    exit $code`;
  const { FORCE_COLOR, NO_COLOR, CI, ...inherited } = process.env;
  return new Promise((resolve, reject) => {
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: root,
      env: { ...inherited, TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
      timeout: 60_000,
    });
    let text = '';
    let tty = '';
    const left = [...types];
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (!tty) [, tty = '', text = ''] = /^(\/dev\/\S+)\r*\n(.*)$/s.exec(text) ?? ['', '', text];
      const [next] = left;
      if (!next || !(typeof next[0] === 'string' ? text.includes(next[0]) : next[0].test(text))) return;
      left.shift();
      if (typeof next[1] === 'string') child.stdin.write(next[1]);
      else resize(tty, next[1]);
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, text, lines: withoutOwn(text).split(/\r*\n/) }));
  });
}
