/** Functions that put claimed rows whose call has not begun back into the queue. A process calls each before it ends. */
export const rowsToPutBack = new Set<() => void>();
