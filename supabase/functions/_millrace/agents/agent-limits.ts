import type { AgentLimits, Turn, Usage } from '../engine/engine-contract.ts';
import { MisconfiguredError, PermanentError } from '../errors.ts';
import { type PriceTable, priceOf, publishedPrices } from '../model/model-prices.ts';
import type { Provider } from '../model/model-settings.ts';

/** Usage of several turns, in tokens and US dollars; null where a response did not report it. */
export interface Used {
  turns: number;
  input: number | null;
  output: number | null;
  costUsd: number | null;
}

/** Adds up the usage of all model turns. */
export function usedBy(turns: readonly Turn[]): Used {
  const usages = turns.flatMap((turn) => (turn.kind === 'model' ? [turn.usage] : []));
  const sum = (field: 'input_tokens' | 'output_tokens' | 'cost_usd') =>
    usages.reduce<number | null>((total, usage) => {
      const part = usage[field];
      return total === null || part === null ? null : total + part;
    }, 0);
  return { turns: usages.length, input: sum('input_tokens'), output: sum('output_tokens'), costUsd: sum('cost_usd') };
}

/** Returns the usage of one attempt and of its whole stage run; null before the attempt's first turn. */
export function attemptUsage(turns: readonly Turn[], attempt: number): Usage | null {
  const own = turns.filter((turn) => turn.attempt === attempt);
  const last = own.findLast((turn) => turn.kind === 'model');
  if (!last) return null;
  const [used, stageRun] = [usedBy(own), usedBy(turns)];
  const [read, written] = [cachedBy(own, 'cached_input_tokens'), cachedBy(own, 'cache_write_tokens')];
  return {
    model: last.usage.model,
    ...(last.usage.prompt !== undefined && { prompt: last.usage.prompt }),
    ...(last.usage.call !== undefined && { call: last.usage.call }),
    input_tokens: used.input,
    output_tokens: used.output,
    cost_usd: used.costUsd,
    ...(read > 0 && { cached_input_tokens: read }),
    ...(written > 0 && { cache_write_tokens: written }),
    ...(own.some((turn) => turn.kind === 'model' && turn.usage.unreported) && { unreported: true }),
    ...(own.some((turn) => turn.kind === 'model' && turn.usage.unpriced) && { unpriced: true }),
    turns: used.turns,
    stage_run_turns: stageRun.turns,
    stage_run_tokens: (stageRun.input ?? 0) + (stageRun.output ?? 0),
    stage_run_cost_usd: stageRun.costUsd,
  };
}

function cachedBy(turns: readonly Turn[], field: 'cached_input_tokens' | 'cache_write_tokens'): number {
  return turns.reduce((sum, turn) => sum + ((turn.kind === 'model' && turn.usage[field]) || 0), 0);
}

/** Throws a MisconfiguredError when a limit is set that cannot be measured, before it costs anything. */
export function checkMeasurable(limits: AgentLimits, { prefix, prices, model }: Provider, table?: PriceTable): void {
  const isSet = prices.input !== undefined && prices.output !== undefined;
  const isPriced = isSet || priceOf(model, [...(table ? [table] : []), publishedPrices]) !== null;
  if (limits.max_cost_usd !== undefined && !isPriced) {
    throw new MisconfiguredError(
      'The agent has a limit of cost (agent.max_cost_usd), but the price of a token is unknown: ' +
        `set ${prefix}_PRICE_INPUT and ${prefix}_PRICE_OUTPUT, or remove the limit.`,
    );
  }
}

/**
 * Throws a permanent error when a limit is used up: it names the limit, what was used and the remedy. Asked before every
 * step, so tokens and cost may be exceeded by one turn, and an answer that has arrived always counts.
 */
export function checkLimits(limits: AgentLimits, turns: readonly Turn[], elapsedMs: number): void {
  const used = usedBy(turns);
  if (used.turns >= limits.max_turns) {
    throw exceeded('turns', 'max_turns', many(limits.max_turns, 'turn'), many(used.turns, 'turn'));
  }
  const measured = used.input !== null && used.output !== null;
  if (!measured && (limits.max_tokens !== undefined || limits.max_cost_usd !== undefined)) {
    throw new PermanentError(
      'agent_usage_unknown',
      'The agent has a limit of tokens or cost, but its model does not report the tokens it uses: ' +
        'use one that does, or limit the turns (agent.max_turns) instead.',
    );
  }
  if (limits.max_cost_usd !== undefined && used.costUsd === null) {
    const last = turns.findLast((turn) => turn.kind === 'model');
    throw new PermanentError(
      'agent_usage_unknown',
      `The agent has a limit of cost (agent.max_cost_usd), but the price of ${last?.usage.model ?? 'its model'}, which has answered, ` +
        'is unknown: set both prices in the settings of its model and start the run anew, or remove the limit.',
    );
  }
  const tokens = (used.input ?? 0) + (used.output ?? 0);
  if (limits.max_tokens !== undefined && tokens >= limits.max_tokens) {
    throw exceeded(
      'tokens',
      'max_tokens',
      many(limits.max_tokens, 'token'),
      `${many(tokens, 'token')} in ${many(used.turns, 'turn')}`,
    );
  }
  const cost = used.costUsd ?? 0;
  if (limits.max_cost_usd !== undefined && used.turns > 0 && cost >= limits.max_cost_usd) {
    const spent = Number(cost.toFixed(6));
    throw exceeded(
      'cost',
      'max_cost_usd',
      many(limits.max_cost_usd, 'US dollar'),
      `${spent} in ${many(used.turns, 'turn')}`,
    );
  }
  if (limits.max_seconds !== undefined && elapsedMs >= limits.max_seconds * 1000) throw timeExceeded(limits, turns);
}

/** The error of an agent whose time is up, however far it has come. */
export function timeExceeded(limits: AgentLimits, turns: readonly Turn[]): PermanentError {
  const { turns: taken } = usedBy(turns);
  return exceeded('time', 'max_seconds', many(limits.max_seconds, 'second'), `all of them in ${many(taken, 'turn')}`);
}

const many = (count: number | undefined, one: string) => `${count} ${one}${count === 1 ? '' : 's'}`;

function exceeded(what: string, option: string, limit: string, used: string): PermanentError {
  return new PermanentError(
    `agent_${what}_exceeded`,
    `The agent has no answer within its limit of ${limit} (agent.${option}); it used ${used}: ` +
      `raise agent.${option} in the stage's definition or give it a smaller task, then retry the stage.`,
  );
}
