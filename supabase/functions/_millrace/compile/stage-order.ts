/** The part of a stage that decides its order. */
interface Placed {
  needs: string[];
  after?: { map: string }[] | undefined;
}

/** Returns the stages right before a stage: its needs, and the maps whose thresholds it awaits. */
export function stagesBefore(stage: Placed | undefined): string[] {
  return [...(stage?.needs ?? []), ...(stage?.after ?? []).map(({ map }) => map)];
}

/** Returns the names of stages that have no cycle, each after those before it; side by side they stay as they were given. */
export function orderStages(stages: Record<string, Placed>): string[] {
  const ordered: string[] = [];
  while (ordered.length < Object.keys(stages).length) {
    const free = Object.entries(stages)
      .filter(([name, stage]) => !ordered.includes(name) && stagesBefore(stage).every((one) => ordered.includes(one)))
      .map(([name]) => name);
    if (free.length === 0) throw new Error(`These stages have a cycle: ${Object.keys(stages).join(', ')}.`);
    ordered.push(...free);
  }
  return ordered;
}

/** Finds all stages that come after each stage by needs and thresholds, in the given order. */
export function stagesAfter(stages: Record<string, Placed>): Record<string, string[]> {
  const after: Record<string, Set<string>> = {};
  for (const name of orderStages(stages).reverse()) {
    const next = Object.keys(stages).filter((other) => stagesBefore(stages[other]).includes(name));
    after[name] = new Set([...next, ...next.flatMap((other) => [...(after[other] ?? [])])]);
  }
  return Object.fromEntries(Object.entries(after).map(([name, later]) => [name, [...later].sort()]));
}
