// The migration that engine/ is built into: which file it is, and what it says.
import fs from 'node:fs';
import path from 'node:path';
import { stampsAfter } from '../migration-stamps.ts';
import { installSql, upgradeSql } from './build.ts';
import { frozenReleases, nextTarget, type Project, type Target } from './releases.ts';

/** A file that is built, and what it is to hold. */
export interface Built {
  file: string;
  text: string;
  /** A migration that no release has frozen, and that this one takes the place of; it has another version in its name. */
  instead: string | null;
}

const pattern = /^\d{14}_millrace_\d[\w.-]*\.sql$/;

/** The migration that is not frozen; null while engine/ is what the last release froze. */
export async function buildMigration(project: Project): Promise<Built | null> {
  const target = nextTarget(project);
  if (!target) return null;
  const { engine, migrations } = project;
  const { from } = target;
  const text = from ? await upgradeSql(engine, { ...target, from }) : await installSql(engine, target);
  const frozen = frozenReleases(engine).map(({ migration }) => migration);
  const names = fs.existsSync(migrations) ? fs.readdirSync(migrations).sort() : [];
  const [found] = names.filter((name) => pattern.test(name) && !frozen.includes(name));
  const [stamp] = found ? [found.slice(0, 14)] : await stampsAfter(names, 1);
  const name = `${stamp}${ending(target)}`;
  const instead = found && found !== name ? path.join(migrations, found) : null;
  return { file: path.join(migrations, name), text, instead };
}

const ending = ({ version }: Target) => `_millrace_${version}.sql`;
