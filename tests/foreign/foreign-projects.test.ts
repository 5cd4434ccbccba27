// Each project of a stranger from `init` to a completed row of its own table, by the tarballs of `npm pack` alone.
// `npm run soak -- foreign`.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Dev, linkTools, startDev } from '../support/cli/dev-command.ts';
import { installPacked, packedTarballs } from '../support/cli/packed.ts';
import { deployFunctions } from '../support/cli/recorded-deployment.ts';
import { type ForeignProject, foreignProjects } from './projects.ts';

const { FORCE_COLOR, npm_lifecycle_event, npm_config_user_agent, ...inherited } = process.env;
const patient = { timeout: 600_000, retry: 0 };

test.each(foreignProjects)(
  '$name: a row is carried through, and all that was there stays',
  patient,
  async (project) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'foreign-'));
    let dev: Dev | undefined;
    try {
      fs.chmodSync(folder, 0o711);
      const own = new Written(project, path.join(folder, 'project'));
      await own.install();
      const before = own.texts();
      own.run('npx millrace init');
      const [, needed] =
        /^Next: (.+), which the tests import/m.exec(own.run(`npx millrace add ${project.add.join(' ')}`)) ?? [];
      if (needed) own.run(needed);
      own.run('npx millrace sync');
      own.renameKeys();
      expect(own.run('npx millrace check 2>&1')).toMatch(/All is well: what is here can be deployed\.\n$/);
      own.run('npx vitest run tests');
      dev = await own.start(path.join(folder, 'data'));
      await expectCarried(project, dev);
      await expectDeployable(own, dev);
      expect(own.texts()).toMatchObject(before);
    } finally {
      await dev?.stop();
      fs.rmSync(folder, { recursive: true, force: true });
    }
  },
);

/** Queues the row at its stage, and waits until it is through. */
async function expectCarried({ add, where, kept, greets }: ForeignProject, dev: Dev): Promise<void> {
  const [pipeline = '', stage = ''] = add;
  const named = add.indexOf('--table');
  const table = named < 0 ? `public.${pipeline}` : add[named + 1];
  const queued = await dev.client.query(`update ${table} set ${stage}_status = 'queued' where ${where}`);
  expect(queued.rowCount).toBe(1);
  const told = async () =>
    (await dev.client.query(`select ${stage}_status as status, ${stage}_error as error from ${table} where ${where}`))
      .rows;
  await expect.poll(told, { timeout: 60_000 }).toEqual([{ status: 'completed', error: null }]);
  expect((await dev.client.query('select what, detail from millrace.doctor() where not ok')).rows).toEqual([]);
  const [statement, answer] = kept;
  expect(Object.values((await dev.client.query(statement)).rows[0])[0]).toEqual(answer);
  expect(await (await fetch(`${dev.functionsUrl}/greet`)).json()).toBe(greets);
}

/** Has the supabase CLI deploy the folder as it is: its migrations to a database that has them, its functions to a recorder. */
async function expectDeployable(own: Written, { dbUrl }: Dev): Promise<void> {
  expect(own.run(`npx supabase db push --yes --remote='${dbUrl}?sslmode=disable' 2>&1`)).toContain('up to date');
  const uploads = await deployFunctions(own.place, own.env);
  expect([...uploads.keys()]).toEqual(expect.arrayContaining(['greet', 'millrace']));
  expect(uploads.size).toBe(3);
}

/** A project in a folder. */
class Written {
  readonly top: string;
  /** The folder that holds `supabase/`. */
  readonly place: string;
  readonly env: NodeJS.ProcessEnv = { ...inherited, NO_COLOR: '1' };
  readonly #installer: ForeignProject['installer'];

  constructor({ files, root = '', installer }: ForeignProject, top: string) {
    this.top = top;
    this.place = path.join(top, root);
    this.#installer = installer;
    for (const [name, text] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(path.join(top, name)), { recursive: true });
      fs.writeFileSync(path.join(top, name), text);
    }
  }

  /** Has both tarballs, the supabase CLI and Vitest installed at the top. */
  async install(): Promise<void> {
    const own = JSON.parse(fs.readFileSync(path.join(this.top, 'package.json'), 'utf8'));
    if (this.#installer === 'pnpm') {
      const tools = path.join(path.dirname(this.top), 'tools');
      fs.mkdirSync(tools);
      execFileSync('npm', ['i', '--prefix', tools, 'pnpm@10'], { stdio: 'pipe' });
      this.env.PATH = `${path.join(tools, 'node_modules', '.bin')}:${this.env.PATH}`;
      const { millrace, dev } = await packedTarballs();
      const tarballs = [millrace, dev].map((tarball) => path.basename(tarball));
      for (const tarball of [millrace, dev]) fs.copyFileSync(tarball, path.join(this.top, path.basename(tarball)));
      this.run(`pnpm add -wD ./${tarballs.join(' ./')} supabase vitest@4`);
      return;
    }
    await installPacked(this.top);
    const file = path.join(this.top, 'package.json');
    const { devDependencies } = JSON.parse(fs.readFileSync(file, 'utf8'));
    fs.writeFileSync(file, JSON.stringify({ ...own, devDependencies }));
    linkTools(this.top);
  }

  /** Runs a line of a shell where the project is. Returns what it wrote; throws unless it ends well. */
  run(line: string): string {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], {
      cwd: this.place,
      encoding: 'utf8',
      env: this.env,
    });
    if (status !== 0) throw new Error(`${line} ended with ${status}:\n${stdout}${stderr}`);
    return stdout;
  }

  /** Gives keys of the configuration the names that `check` asks for. */
  renameKeys(): void {
    const { stderr } = spawnSync('npx', ['millrace', 'check'], { cwd: this.place, encoding: 'utf8', env: this.env });
    for (const [, file = '', key = '', now = ''] of stderr.matchAll(/^(\S+) has (\w+), which .* call it (\w+)\.$/gm)) {
      const config = path.join(this.place, file);
      fs.writeFileSync(config, fs.readFileSync(config, 'utf8').replace(`[${key}]`, `[${now}]`));
    }
  }

  /** Starts the stack, and once more after the command that its refusal names. */
  async start(data: string): Promise<Dev> {
    // npx hands no Ctrl-C on.
    const command = [path.join(this.top, 'node_modules', '.bin', 'millrace')];
    const given = { project: this.place, data, env: this.env, command };
    try {
      return await startDev(given);
    } catch (error) {
      const [, line] = /`((?:npm i|pnpm add) -D [^`]+)`/.exec(String(error)) ?? [];
      if (!line) throw error;
      this.run(line);
      // npm takes away what package.json does not name.
      if (this.#installer !== 'pnpm') linkTools(this.top);
      return startDev(given);
    }
  }

  /** The project's own files with their texts, but the configuration, to which sections are added. */
  texts(): Record<string, string> {
    const found = fs.readdirSync(path.join(this.place, 'supabase'), { recursive: true, withFileTypes: true });
    const files = found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
    return Object.fromEntries(
      files
        .map((file) => [path.relative(this.place, file), fs.readFileSync(file, 'utf8')])
        .filter(([name = '']) => !/config\.\w+$/.test(name)),
    );
  }
}
