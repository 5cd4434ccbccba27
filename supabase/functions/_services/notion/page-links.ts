import type { PageObjectResponse } from '@notionhq/client';
import { linksOf, type SourceLink, textLinks } from '../text-links.ts';

type Property = PageObjectResponse['properties'][string];
type RichText = { plain_text: string; href: string | null }[];

/**
 * The links of a page of a data source: those of the property with this name, or of all properties where `column` is null. A text
 * in the named property that has none is taken as it is, for it was meant to be one.
 */
export function pageLinks({ properties, url }: PageObjectResponse, column: string | null): SourceLink[] {
  const named =
    column === null ? Object.values(properties) : [properties[column]].filter((property) => property !== undefined);
  const urls = named.flatMap((property) => propertyLinks(property, column !== null));
  return [...new Set(urls)].map((link) => ({ url: link, place: url }));
}

/** A property, or an item of a rollup's list, which has a value and no name. */
type Value = Property | Extract<Extract<Property, { type: 'rollup' }>['rollup'], { type: 'array' }>['array'][number];

function propertyLinks(property: Value, isMeant: boolean): string[] {
  switch (property.type) {
    case 'url':
      return property.url?.trim() ? [property.url.trim()] : [];
    case 'title':
      return richLinks(property.title, isMeant);
    case 'rich_text':
      return richLinks(property.rich_text, isMeant);
    case 'formula':
      return property.formula.type === 'string' ? plainLinks(property.formula.string ?? '', isMeant) : [];
    case 'files':
      return property.files.flatMap((file) => ('external' in file && file.external ? [file.external.url] : []));
    case 'rollup':
      return property.rollup.type === 'array'
        ? property.rollup.array.flatMap((value) => propertyLinks(value, isMeant))
        : [];
    default:
      return [];
  }
}

/** The links behind words, and those that are written out. */
function richLinks(texts: RichText, isMeant: boolean): string[] {
  const linked = texts.flatMap(({ href }) => (href !== null && /^https?:/i.test(href) ? [href] : []));
  // A word with a link parts what stands before it from what comes after.
  const written = texts.map(({ href, plain_text }) => (href === null ? plain_text : ' ')).join('');
  const whole = texts.map(({ plain_text }) => plain_text).join('');
  const behind = linksOf(linked, whole).slice(0, new Set(linked).size);
  return [...new Set([...behind, ...plainLinks(written, isMeant && linked.length === 0)])];
}

function plainLinks(text: string, isMeant: boolean): string[] {
  const found = textLinks(text);
  return found.length > 0 || !isMeant || text.trim() === '' ? found : [text.trim()];
}
