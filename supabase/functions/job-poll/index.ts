import { servePolls } from '../_millrace/jobs/poll-jobs.ts';

servePolls();
