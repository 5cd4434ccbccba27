// JSON-LD of schema.org, as pages write it: alone, in lists, in a graph, one in another.

export type Node = Record<string, unknown>;

const mostNodes = 300;
const deepest = 5;
const within = ['@graph', 'mainEntity', 'mainEntityOfPage', 'itemListElement', 'item', 'hasPart'];

/** The nodes of a type, in the order in which they stand. */
export function nodesOfType(data: readonly unknown[], type: RegExp): Node[] {
  return allNodes(data).filter((node) => typesOf(node).some((name) => type.test(name)));
}

function allNodes(data: readonly unknown[]): Node[] {
  const found: Node[] = [];
  const look = (value: unknown, depth: number) => {
    if (depth > deepest || found.length >= mostNodes) return;
    if (Array.isArray(value)) {
      for (const item of value) look(item, depth + 1);
    } else if (isNode(value)) {
      found.push(value);
      for (const key of within) look(value[key], depth + 1);
    }
  };
  for (const value of data) look(value, 0);
  return found;
}

/** The names of a node's types, without where they are defined. */
function typesOf(node: Node): string[] {
  return [node['@type']].flat().flatMap((type) => (typeof type === 'string' ? [type.replace(/^.*[/#:]/, '')] : []));
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text itself, that under one of the keys of an object, or of the first in a list that has one. */
export function textOf(value: unknown, ...keys: string[]): string | null {
  for (const one of [value].flat()) {
    if (typeof one === 'string' && one.trim() !== '') return one.trim();
    if (typeof one === 'number') return String(one);
    if (!isNode(one)) continue;
    for (const key of ['@value', ...keys]) {
      const text = one[key];
      const said = isNode(text) || Array.isArray(text) ? textOf(text, ...keys) : text;
      if (typeof said === 'number') return String(said);
      if (typeof said === 'string' && said.trim() !== '') return said.trim();
    }
  }
  return null;
}
