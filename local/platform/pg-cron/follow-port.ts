import { runWhereThere } from '../database/run-where-there.ts';

/**
 * Has the real pg_cron reach the server at `superUrl`: it runs each job at the port at which that was scheduled, and a cluster is
 * copied, and started again, at others.
 */
export const followPort = (superUrl: string): Promise<void> =>
  runWhereThere(superUrl, 'cron.job', 'update cron.job set nodeport = inet_server_port() where true');
