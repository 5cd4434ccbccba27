// A fresh database of the run's server: a copy of the migrated one.
import { inject } from 'vitest';
import { copyDatabase, type TestDatabase } from '../../packages/test/database.ts';

export type { TestDatabase };

/** The template that a database is a copy of: all migrations of the project, examples too, or those of the engine alone. */
export type Contents = 'project' | 'engine';

/** Creates a database with the roles, stand-ins and migrations applied. Throws when the migrations do not apply. */
export function createTestDatabase(contents: Contents = 'project'): Promise<TestDatabase> {
  return createDatabase(contents === 'project' ? 'postgres' : 'engine');
}

/** Creates a database with the roles and stand-ins alone, as a project is before its first migration. */
export function createBareDatabase(): Promise<TestDatabase> {
  return createDatabase('contrib_regression');
}

async function createDatabase(template: string): Promise<TestDatabase> {
  const error = inject('postgresError');
  if (error) throw new Error(error);
  return copyDatabase(inject('postgresPort'), template);
}
