import { expect, test } from 'vitest';
import { tidyFacts } from '../../supabase/functions/_documents/read-facts.ts';

const entity = (name: string) => ({ name, type: 'other' as const, description: '' });
const relation = (source: string, target: string) => ({ source, relation: 'met', target, fact: 'They met.' });

test('of a model’s answer each entity is kept once, and relations between two of them by their names', () => {
  const entities = ['Zoë', 'ZOE', '---', 'Bob'].map(entity);
  const relations = [
    relation('zoe', '"Bob"'),
    relation('Bob', 'Carol'),
    relation('Zoë', 'ZOE'),
    relation('Bob', '---'),
  ];
  expect(tidyFacts({ entities, relations })).toEqual({
    entities: [entity('Zoë'), entity('Bob')],
    relations: [relation('Zoë', 'Bob')],
  });
});

test.each([
  ['राम', 'रीमा'],
  ['バス', 'パス'],
  ['גָּל', 'גֵּל'],
])('names are others where other marks make other letters of theirs: %s and %s', (one, other) => {
  const said = { entities: [entity(one), entity(other)], relations: [relation(one, other)] };
  expect(tidyFacts(said)).toEqual(said);
});

test('characters that Postgres cannot store are replaced, and blanks are no names, relations or facts', () => {
  const entities = [entity('A\0da\n Stone '), entity('\ud800Bob'), entity('  ')];
  const said = { source: 'A\0da Stone', relation: ' met\0 ', target: '\ud800bob', fact: 'They\nmet.' };
  const relations = [said, { ...said, fact: ' ' }, { ...said, relation: '\n' }];
  expect(tidyFacts({ entities, relations })).toEqual({
    entities: [entity('A\ufffdda Stone'), entity('\ufffdBob')],
    relations: [{ source: 'A\ufffdda Stone', relation: 'met\ufffd', target: '\ufffdBob', fact: 'They met.' }],
  });
});
