// Which Postgres `millrace dev` runs: the one that is named, else one of the major version that the project's configuration says.
import { createRequire } from 'node:module';
import path from 'node:path';
import { addCommand } from './add-command.ts';
import { embeddedPostgres, installed, packageVersion } from './binaries.ts';
import { oldCronNotice } from './extensions.ts';
import { configFile, readConfig } from './functions/project-config.ts';
import { postgresFiles } from './postgres-files.ts';

/** Where npm's packages are of other majors than the stack's own. Their versions are no releases, so that a range finds none. */
export const packedVersions: Record<number, string> = {
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  18: '18.4.0-beta.17',
};

/**
 * Chooses the Postgres that this process runs: the one in the folder `named`, else the one of MILLRACE_POSTGRES, else one of the major that the
 * configuration of the project in `root` says, npm's from the project where the stack's own is of another. Throws where there is
 * none of that major, with the command that fetches it. Tells `say` where the two majors differ.
 */
export function choosePostgres(root: string, named: string | undefined, say: (message: string) => void): void {
  const supabase = path.join(root, 'supabase');
  const wanted = readConfig(supabase).db?.major_version;
  if (named) process.env.MILLRACE_POSTGRES = path.resolve(named);
  else if (!process.env.MILLRACE_POSTGRES && wanted !== undefined) findPacked(root, wanted);
  const postgres = postgresFiles();
  const { version } = postgres;
  const notice = oldCronNotice(postgres);
  if (notice) say(notice);
  if (wanted === undefined || majorOf(version) === wanted) return;
  say(
    `This is Postgres ${version}, and ${path.basename(configFile(supabase) ?? '')} says major_version ${wanted}. What the linked project ` +
      'has is told by: npx supabase db query --linked "show server_version"',
  );
}

const majorOf = (version: string) => Number.parseInt(version, 10);

function findPacked(root: string, wanted: number): void {
  const ofProject = createRequire(path.join(root, 'package.json')).resolve.paths(embeddedPostgres) ?? [];
  const places = [installed([embeddedPostgres]), installed([embeddedPostgres], ofProject)];
  const folder = places.find((place) => place !== undefined && majorOf(packageVersion(place)) === wanted);
  if (folder) {
    process.env.MILLRACE_POSTGRES = path.join(folder, 'native');
    return;
  }
  const version = packedVersions[wanted];
  if (!version)
    throw new Error(`major_version is ${wanted}, but the engine needs Postgres 15 to 18: correct the configuration.`);
  throw new Error(
    `The configuration says major_version ${wanted}, which the stack does not bring along. Fetch it with \`${addCommand(root)} ${embeddedPostgres}@${version}\`, or ` +
      `name an installed one: \`npx millrace dev --postgres /usr/lib/postgresql/${wanted}\`.`,
  );
}
