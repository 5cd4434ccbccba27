// The verbs that people do, written by `npm run check -- --write` from the tables of the engine: a new verb is a row there.

/** A verb of the operators. */
export interface Verb {
  about: 'run' | 'stage' | 'alert' | 'channel' | 'bulk';
  /** The fields that its request must have. */
  needs: readonly string[];
  /** Whether work is lost or left out. */
  destroys: boolean;
  /** A sentence on what the verb does, for pages and help. */
  says: string;
}

export const verbs = {
  retry: {
    about: 'run',
    needs: [],
    destroys: false,
    says: 'Queues the failed or cancelled stages of runs that are over; results of other stages stay.',
  },
  cancel: { about: 'run', needs: [], destroys: true, says: 'Ends runs; the sweep cancels their children.' },
  reset: {
    about: 'run',
    needs: [],
    destroys: true,
    says: 'Starts a stage and all stages that depend on it over, or the whole run, with new children.',
  },
  edit: {
    about: 'run',
    needs: ['stage', 'attempt'],
    destroys: true,
    says: 'Gives a stage another result, or its row other values, and starts the following stages over.',
  },
  fail: {
    about: 'run',
    needs: ['stage'],
    destroys: true,
    says: 'Fails a queued, started or waiting stage; its policy retries it, unless permanent.',
  },
  skip: {
    about: 'run',
    needs: ['stage'],
    destroys: true,
    says: 'Skips a stage that is not done: its result is null, and the run goes on.',
  },
  hurry: { about: 'run', needs: [], destroys: false, says: 'Makes retries in backoff due at once.' },
  pause: {
    about: 'stage',
    needs: ['pipeline'],
    destroys: false,
    says: 'Stops a pipeline, or one stage, from handing out work; what is in work goes on.',
  },
  unpause: {
    about: 'stage',
    needs: ['pipeline'],
    destroys: false,
    says: 'Lets a pipeline, or one stage, hand out work again.',
  },
  throttle: {
    about: 'stage',
    needs: ['pipeline', 'stage', 'reason'],
    destroys: false,
    says: "Sets other limits in place of a stage's, or of a shared limit's, for a while.",
  },
  unthrottle: {
    about: 'stage',
    needs: ['pipeline', 'stage'],
    destroys: false,
    says: 'Ends a throttle, and the pauses of a shared limit for which services asked.',
  },
  bypass: {
    about: 'stage',
    needs: ['pipeline', 'stage', 'reason'],
    destroys: true,
    says: 'Leaves a stage out: runs go on without it, and take_up starts it later for their rows.',
  },
  end_bypass: {
    about: 'stage',
    needs: ['pipeline', 'stage'],
    destroys: false,
    says: 'Ends the bypass of a stage; the rows it left out stay remembered.',
  },
  take_up: {
    about: 'stage',
    needs: ['pipeline', 'stage'],
    destroys: false,
    says: 'Starts rows that a bypass has left out, oldest first.',
  },
  silence: {
    about: 'alert',
    needs: [],
    destroys: false,
    says: 'Silences alerts of a pipeline, a stage or a kind, or those like a given alert, for a while.',
  },
  unsilence: { about: 'alert', needs: ['silence'], destroys: false, says: 'Ends a silence.' },
  test_channel: {
    about: 'channel',
    needs: ['channel'],
    destroys: false,
    says: 'Sends a test message to a channel of alerts.',
  },
  preview: {
    about: 'bulk',
    needs: ['do', 'filter'],
    destroys: false,
    says: "Counts the runs that a filter finds, and forecasts a verb's cost; changes no run.",
  },
  try: {
    about: 'bulk',
    needs: ['bulk'],
    destroys: false,
    says: 'Does the verb of a previewed bulk to one of its runs, as a trial.',
  },
  begin: { about: 'bulk', needs: ['bulk'], destroys: false, says: 'Begins a bulk that was previewed.' },
  continue: {
    about: 'bulk',
    needs: ['bulk'],
    destroys: false,
    says: 'Does the next slice of a bulk and shows how far the bulk is.',
  },
  abort: {
    about: 'bulk',
    needs: ['bulk'],
    destroys: true,
    says: 'Ends a bulk; runs that it has changed stay as they are.',
  },
} as const satisfies Record<string, Verb>;

type About<A> = { [V in keyof typeof verbs]: (typeof verbs)[V]['about'] extends A ? V : never }[keyof typeof verbs];
/** A verb that is done to runs, one by one or in bulk. */
export type RunVerb = About<'run'>;

const about = (what: Verb['about']) =>
  Object.entries(verbs).flatMap(([verb, row]) => (row.about === what ? [verb] : []));
export const runVerbs = about('run') as RunVerb[];
export const stageVerbs = about('stage') as About<'stage'>[];

/** Returns whether the request of a verb must have a field. */
export const isNeeded = (verb: keyof typeof verbs, field: string) => (verbs[verb] as Verb).needs.includes(field);
