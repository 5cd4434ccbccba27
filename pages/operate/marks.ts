// When something new was released: a definition of a pipeline, or a function or worker of a stage.
import type { Overview, Settings, StageHealth, Version } from '../../operators/answers.ts';
import { usePoll } from '../base/poll.ts';
import { read } from './api.ts';

export interface Mark {
  at: string;
  what: string;
}

/** The releases of stages and the definitions of a pipeline, the oldest first; those of one minute are one mark. */
export function marksOf(stages: StageHealth[], versions: Pick<Version, 'version' | 'since'>[]): Mark[] {
  const found = new Map<string, Mark & { names: string[] }>();
  const add = (at: string, name: string) => {
    const minute = new Date(at).toISOString().slice(0, 16);
    const known = found.get(minute);
    if (known) known.names.push(name);
    else found.set(minute, { at, what: '', names: [name] });
  };
  for (const { version, since } of versions) add(since, `definition ${version}`);
  for (const { stage, releases } of stages)
    for (const { at, release } of releases ?? []) add(at, `${stage} ${release}`);
  const some = ([...names]: string[]) =>
    names.length > 4 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');
  return [...found.values()]
    .map(({ at, names }) => ({ at, what: some(names) }))
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

/** The stages with their releases, and the definitions of today. */
async function askReleases() {
  const [{ stages }, { pipelines }] = await Promise.all([
    read<Overview>('overview', { quiet: true }),
    read<Settings>('settings'),
  ]);
  return { stages, pipelines };
}

/** Returns the marks of a pipeline by its name; of all pipelines, each by its name, for an empty one. */
export function useMarks(): (name: string) => Mark[] {
  const { stages = [], pipelines = [] } = usePoll('releases', askReleases, 300_000).value.answer ?? {};
  const marksFor = (name: string) =>
    marksOf(
      stages.filter(({ pipeline }) => pipeline === name),
      pipelines.flatMap(({ pipeline, version, since }) =>
        pipeline === name && version !== null && since !== null ? [{ version, since }] : [],
      ),
    );
  return (name) =>
    name
      ? marksFor(name)
      : pipelines.flatMap(({ pipeline }) =>
          marksFor(pipeline).map(({ at, what }) => ({ at, what: `${pipeline}: ${what}` })),
        );
}

/** The marks between the first and the last point of a chart. */
export function marksWithin(marks: Mark[], points: { at: string }[], stepSeconds: number): Mark[] {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) return [];
  const [from, to] = [Date.parse(first.at), Date.parse(last.at) + stepSeconds * 1000];
  return marks.filter(({ at }) => Date.parse(at) >= from && Date.parse(at) < to);
}
