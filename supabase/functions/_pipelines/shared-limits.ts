import { defineSharedLimits } from '../_millrace/mod.ts';

const minute = 60;
const day = 24 * 60 * minute;

/** Limits that several stages share. After a change run `npm run pipelines:sync`. */
export const sharedLimits = defineSharedLimits({
  // Pages of jobs and posts together, and of one board. A board that asks for patience pauses its own pages alone.
  scrapes: { rate: { count: 120, perSeconds: minute }, keyRate: { count: 60, perSeconds: minute } },
  // The account of the model. Dollars are known where the settings have its prices, tokens always.
  model: { maxInFlight: 20, spending: { usd: 5, tokens: 10_000_000, perSeconds: day } },
});
