import type { PageObjectResponse } from '@notionhq/client';
import { type SourceLink, textLinks } from '../text-links.ts';

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

function propertyLinks(property: Property, isMeant: boolean): string[] {
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
    default:
      return [];
  }
}

/** The links behind words, and those that are written out. */
function richLinks(texts: RichText, isMeant: boolean): string[] {
  const linked = texts.flatMap(({ href }) => (href !== null && /^https?:/i.test(href) ? [href] : []));
  const written = texts.filter(({ href }) => href === null).map(({ plain_text }) => plain_text);
  return [...linked, ...plainLinks(written.join(''), isMeant && linked.length === 0)];
}

function plainLinks(text: string, isMeant: boolean): string[] {
  const found = textLinks(text);
  return found.length > 0 || !isMeant || text.trim() === '' ? found : [text.trim()];
}
