/** Functions that put claimed rows which wait for a call back into the queue. A process that is to end calls each of them. */
export const rowsToPutBack = new Set<() => void>();
