/**
 * A body that is sent once. Where a connection that was kept open breaks, Deno's fetch sends a text or bytes a second time by itself,
 * whether or not the first has arrived: the provider would be paid twice. A blob is a stream, which Deno sends no second time.
 *
 * @internal
 */
export const sentOnce = (json: string): Blob => new Blob([json], { type: 'application/json' });
