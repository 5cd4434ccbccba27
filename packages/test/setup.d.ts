/** Starts one Postgres for all processes of a test run; the returned function stops it. */
export default function setup(): Promise<() => Promise<void>>;
