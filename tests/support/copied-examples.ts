// The examples as somebody's own code: copied into a project that `millrace init` has made, and run there.
import fs from 'node:fs';
import path from 'node:path';
import { projectOptions } from '../../local/platform/dev.ts';
import { ProjectStack } from './project-stack.ts';

const supabase = path.join(import.meta.dirname, '..', '..', 'supabase');
const ours = ['_millrace', 'millrace', 'job-complete'];

/** Copies functions, their sections and their tables into `root`, and leaves the pipelines' migrations to `millrace sync`. */
export function copyExamples(root: string): void {
  const into = path.join(root, 'supabase');
  for (const name of fs.readdirSync(path.join(supabase, 'functions')).filter((name) => !ours.includes(name))) {
    fs.cpSync(path.join(supabase, 'functions', name), path.join(into, 'functions', name), { recursive: true });
  }
  const config = fs.readFileSync(path.join(supabase, 'config.toml'), 'utf8');
  const sections = config.match(/^\[functions\.[\w-]+\]\n(?:[^[\n].*\n)*/gm) ?? [];
  const theirs = sections.filter((section) => !ours.some((name) => section.startsWith(`[functions.${name}]`)));
  fs.appendFileSync(path.join(into, 'config.toml'), `\n${theirs.join('\n')}`);
  const migrations = path.join(into, 'migrations');
  const [engine = ''] = fs.readdirSync(migrations);
  // As if it had been installed before the tables were made.
  fs.renameSync(path.join(migrations, engine), path.join(migrations, '20261101000000_millrace.sql'));
  for (const name of fs.readdirSync(path.join(supabase, 'migrations'))) {
    if (/_(millrace|pipeline_\w+|shared_limits)\.sql$/.test(name)) continue;
    fs.copyFileSync(path.join(supabase, 'migrations', name), path.join(migrations, name));
  }
}

/** The project in `root` on a stack with the services that the examples ask. */
export class CopiedExamples extends ProjectStack {
  static async start(root: string, siteUrl: string): Promise<CopiedExamples> {
    const env = { SCRAPER_ALLOW_HOSTS: new URL(siteUrl).host, USE_NEW_PIPELINE: 'true' };
    return new CopiedExamples(await ProjectStack.launch({ ...projectOptions(root), env }));
  }
}
