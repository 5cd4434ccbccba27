// The statements of the engine's SQL, as Postgres's own parser reads them.

/** A node of Postgres's own grammar, as its parser tells it. */
// biome-ignore lint/suspicious/noExplicitAny: the grammar has hundreds of shapes, and each reader knows the one it reads.
export type Node = any;

/** One statement of a file, with the comments before it. */
export interface Statement {
  /** Path of the file below engine/. */
  file: string;
  /** The node's name in Postgres's own grammar, such as `CreateFunctionStmt`. */
  kind: string;
  node: Node;
  text: string;
}
