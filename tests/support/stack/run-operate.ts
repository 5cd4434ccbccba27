// The operators' commands within a test's process, and assistants that start `npx millrace mcp`.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { vi } from 'vitest';
import { CommandError } from '../../../cli/command-error.ts';
import { operateEntries } from '../../../cli/operate/entries.ts';
import { type Ended, projectFolder } from '../../cli/run-command.ts';

/** A command within this process, where a new one would prove no more: all it prints, and its exit code. */
export async function inProcess([name = '', ...args]: string[], env: Record<string, string>): Promise<Ended> {
  for (const [variable, value] of Object.entries(env)) vi.stubEnv(variable, value);
  let stdout = '';
  const written = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text;
    return true;
  });
  const before = process.exitCode;
  try {
    await (await operateEntries[name]?.load())?.run(args);
    return { code: Number(process.exitCode), stdout, stderr: '' };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { code: error.exitCode, stdout, stderr: error.message };
  } finally {
    process.exitCode = before;
    written.mockRestore();
    vi.unstubAllEnvs();
  }
}

/** An assistant that has started `npx millrace mcp`. */
export async function assistant(program: string, args: string[], env: Record<string, string>) {
  const client = new Client({ name: 'test-client', version: '1' });
  const command = [program, 'mcp', ...args];
  const inherited = { PATH: process.env.PATH as string, ...env };
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: command, cwd: projectFolder, env: inherited }),
  );
  return {
    client,
    async call(name: string, given: Record<string, unknown> = {}) {
      const answer = await client.callTool({ name, arguments: given });
      const [{ text = '' } = {}] = answer.content as { text: string }[];
      const lines = text.split('\n');
      const [, number = ''] = /number ([0-9a-f]{24})\./.exec(text) ?? [];
      const data = lines[lines.indexOf(`<data ${number}>`) + 1] ?? '';
      return { isError: answer.isError === true, text, lines, number, data };
    },
  };
}
