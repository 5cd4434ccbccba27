import type { Usage } from '../_millrace/mod.ts';

/** Passes on, at each report, the sum of all so far: an attempt has one usage, however often it asks. */
export function summedUsage(report: (usage: Usage) => void): (usage: Usage) => void {
  let sum: Usage | undefined;
  return (usage) => {
    sum = sum ? add(sum, usage) : usage;
    report(sum);
  };
}

function add(one: Usage, other: Usage): Usage {
  const prompt = list(one.prompt, other.prompt);
  const seconds = plus(one.audio_seconds ?? null, other.audio_seconds ?? null);
  return {
    model: list(one.model, other.model),
    ...(prompt === '' ? {} : { prompt }),
    input_tokens: plus(one.input_tokens, other.input_tokens),
    output_tokens: plus(one.output_tokens, other.output_tokens),
    cost_usd: plus(one.cost_usd, other.cost_usd),
    ...(seconds === null ? {} : { audio_seconds: seconds }),
  };
}

/** Null only where neither is known. */
function plus(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}

/** The names of both lists, each once. */
function list(one = '', other = ''): string {
  return [...new Set([...one.split(', '), other])].filter(Boolean).join(', ');
}
