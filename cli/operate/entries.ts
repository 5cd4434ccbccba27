// The operator's commands: what each is for, loaded when it is asked for.
import type { Entry } from '../define-command.ts';

export const operateEntries: Record<string, Entry> = {
  status: {
    summary: 'which stage is behind, since when and why; exit code 1 where not all is well',
    load: async () => (await import('./status.ts')).status,
  },
  watch: {
    summary: 'the same with rates and the newest errors, drawn anew in place',
    load: async () => (await import('./watch.ts')).watch,
  },
  runs: { summary: 'runs that a filter finds', load: async () => (await import('./runs.ts')).runs },
  show: {
    summary: 'one run: where it stands, why, and its attempts',
    load: async () => (await import('./show-run.ts')).show,
  },
  logs: {
    summary: 'the log lines that the newest attempts of a run have kept',
    load: async () => (await import('./logs.ts')).logs,
  },
  dead: { summary: 'what failed for good, by stage and error', load: async () => (await import('./runs.ts')).dead },
  retry: { summary: 'goes on where runs failed', load: async () => (await import('./act-on-runs.ts')).retry },
  cancel: { summary: 'ends runs, or a bulk', load: async () => (await import('./act-on-runs.ts')).cancel },
  reset: { summary: 'does runs anew', load: async () => (await import('./act-on-runs.ts')).reset },
  skip: { summary: 'goes on without a stage', load: async () => (await import('./act-on-runs.ts')).skip },
  fail: { summary: 'fails a stage by hand', load: async () => (await import('./act-on-runs.ts')).fail },
  hurry: { summary: 'lets retries go at once', load: async () => (await import('./act-on-runs.ts')).hurry },
  pause: {
    summary: 'a pipeline or a stage hands out no work',
    load: async () => (await import('./act-on-stage.ts')).pause,
  },
  unpause: { summary: 'it hands out work again', load: async () => (await import('./act-on-stage.ts')).unpause },
  throttle: { summary: 'less at once, for a while', load: async () => (await import('./act-on-stage.ts')).throttle },
  bypass: {
    summary: 'leaves a stage out, and takes up later what went on without it',
    load: async () => (await import('./bypass.ts')).bypass,
  },
  alerts: { summary: 'what somebody should look at', load: async () => (await import('./alerts.ts')).alerts },
  silence: { summary: 'nobody hears of alerts for a while', load: async () => (await import('./alerts.ts')).silence },
  journal: { summary: 'who did what, when and why', load: async () => (await import('./journal.ts')).journal },
  open: {
    summary: "the operator's page in your browser, served from this machine",
    load: async () => (await import('./open-page.ts')).open,
  },
  mcp: {
    summary: 'the same for an assistant, over stdio (Model Context Protocol)',
    load: async () => (await import('./serve-mcp.ts')).mcp,
  },
};
