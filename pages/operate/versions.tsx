// The versions of a definition, and what changed between two of them.

import type { Version } from '../../operators/answers.ts';
import { Moment } from '../base/format.tsx';
import { Fresh } from '../base/fresh.tsx';
import { usePoll } from '../base/poll.ts';
import { ask, type Route, to } from '../base/route.ts';
import { Table } from '../base/table.tsx';
import { Words } from '../base/words.tsx';
import { read } from './api.ts';
import { State } from './states.tsx';

export interface Change {
  /** Where it stands: the stage, and the field of it. */
  at: string;
  was: string | undefined;
  is: string | undefined;
}

/** Every value of a tree by its path; a list is one value. */
function leaves(value: unknown, at: string[] = []): [string, string][] {
  // A stage that only needs others is stored as their list.
  if (Array.isArray(value) && at.length === 1) return leaves({ needs: value }, at);
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return [[at.join(' › '), JSON.stringify(value) ?? '']];
  }
  return Object.entries(value).flatMap(([name, inner]) => leaves(inner, [...at, name]));
}

/** Returns the differences between two graphs: in the order of the newer graph, then the parts that are gone. */
export function changesBetween(older: unknown, newer: unknown): Change[] {
  const [was, is] = [new Map(leaves(older)), new Map(leaves(newer))];
  return [...new Set([...is.keys(), ...was.keys()])]
    .filter((at) => was.get(at) !== is.get(at))
    .map((at) => ({ at, was: was.get(at), is: is.get(at) }));
}

export function Versions({ pipeline, query }: { pipeline: string; query: Route['query'] }) {
  const found = usePoll(`versions ${pipeline}`, () => read<{ versions: Version[] }>('settings', { pipeline }), 60_000);
  return (
    <Fresh of={found.value}>
      {({ versions }) => {
        const newer = versions.find(({ version }) => String(version) === query.get('newer')) ?? versions[0];
        const before = versions[versions.findIndex(({ version }) => version === newer?.version) + 1];
        const older = versions.find(({ version }) => String(version) === query.get('older')) ?? before;
        return (
          <>
            <p class="hint">
              A version is the graph of <a href={to('pipeline', pipeline)}>{pipeline}</a> as it was; a run ends on the
              one it began with. Limits, retries and timeouts apply at once and are no part of it.
            </p>
            <Table
              label="Versions"
              rows={versions}
              keyOf={({ version }) => version}
              none="It has no version."
              columns={[
                { name: 'Version', cell: ({ version }) => version },
                { name: 'Since', cell: ({ since }) => <Moment at={since} /> },
                {
                  name: 'Comparison',
                  cell: ({ version }) => (
                    <span class="actions">
                      {(
                        [
                          ['newer', newer],
                          ['older', older],
                        ] as const
                      ).map(([which, one]) => (
                        <button
                          key={which}
                          type="button"
                          aria-pressed={one?.version === version}
                          aria-label={`Compare version ${version} as the ${which} one`}
                          onClick={() => ask({ [which]: version })}
                        >
                          {one?.version === version && <span aria-hidden="true">✓ </span>}
                          {which}
                        </button>
                      ))}
                    </span>
                  ),
                },
              ]}
            />
            {newer && older && <Changes older={older} newer={newer} />}
          </>
        );
      }}
    </Fresh>
  );
}

function Changes({ older, newer }: { older: Version; newer: Version }) {
  return (
    <>
      <h3>
        Changes from version {older.version} to {newer.version}
      </h3>
      <Table
        label="Changes"
        rows={changesBetween(older.graph, newer.graph)}
        keyOf={({ at }) => at}
        none="Nothing."
        columns={[
          {
            name: 'Change',
            cell: ({ was, is }) =>
              was === undefined ? (
                <State is="completed">added</State>
              ) : is === undefined ? (
                <State is="failed">removed</State>
              ) : (
                <State is="superseded">changed</State>
              ),
          },
          { name: 'Field', cell: ({ at }) => <Words text={at} most={200} /> },
          { name: 'Before', cell: ({ was }) => <Words text={was} most={300} /> },
          { name: 'After', cell: ({ is }) => <Words text={is} most={300} /> },
        ]}
      />
    </>
  );
}
