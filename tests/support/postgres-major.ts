import { postgresFiles } from '../../local/platform/postgres-files.ts';

/** The major version of the Postgres on which the tests run. */
export const postgresMajor = Number.parseInt(postgresFiles().version, 10);
