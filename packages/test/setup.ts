// Vitest's `globalSetup`, or the first import of a program that runs tests: one Postgres for all of its processes.
import process from 'node:process';
import { projectFolder } from './project-runtime.ts';
import { portSetting, startTestServer } from './test-server.ts';

/** Starts the server and names its port to the processes that begin after it. Returns what stops it. */
export default async function setup(): Promise<() => Promise<void>> {
  const server = await startTestServer(projectFolder());
  process.env[portSetting] = String(server.port);
  return async () => {
    delete process.env[portSetting];
    await server.stop();
  };
}
