import { fieldText } from './page-text.ts';
import { isNode, type Node, nodesOfType, textOf } from './schema-nodes.ts';

/** The fields of a JobPosting, as they stand. */
export interface JobPosting {
  title: string | null;
  company: string | null;
  companyWebsite: string | null;
  location: string | null;
  description: string | null;
  salary: string | null;
  employmentType: string | null;
  applicationUrl: string | null;
  datePosted: string | null;
  validThrough: string | null;
  /** The country of its first place, as it is written. */
  country: string | null;
}

const longestDescription = 50_000;
const longestLine = 1_000;
const mostPlaces = 5;

/** The posting that a page is about: of several the one whose address is the page's, else the one that says most. */
export function jobPosting(data: readonly unknown[], address: string): JobPosting | null {
  const nodes = nodesOfType(data, /^JobPosting$/i);
  const own = nodes.find((node) =>
    [node.url, node['@id']].some((url) => typeof url === 'string' && same(url, address)),
  );
  const best = own ?? nodes.toSorted((a, b) => Object.keys(b).length - Object.keys(a).length)[0];
  return best ? postingOf(best) : null;
}

function same(url: string, address: string): boolean {
  const plain = (text: string) =>
    text
      .replace(/^https?:\/\/(?:www\.)?/, '')
      .replace(/[#?].*$/, '')
      .replace(/\/$/, '');
  return plain(url) === plain(address);
}

function postingOf(node: Node): JobPosting {
  const company = node.hiringOrganization;
  const description = textOf(node.description);
  const title = textOf(node.title) ?? textOf(node.name);
  return {
    title: title && fieldText(title, 300),
    company: line(textOf(company, 'name', 'legalName')),
    companyWebsite: webAddress(isNode(company) ? (textOf(company.sameAs) ?? textOf(company.url)) : null),
    location: line(locationOf(node)),
    description: description && fieldText(description, longestDescription),
    salary: line(salaryOf(node.baseSalary ?? node.estimatedSalary ?? node.salary)),
    employmentType: line(
      [node.employmentType]
        .flat()
        .filter((type) => typeof type === 'string')
        .join(', '),
    ),
    applicationUrl: webAddress(textOf(node.url) ?? textOf(node.applicationContact, 'url')),
    datePosted: textOf(node.datePosted),
    validThrough: textOf(node.validThrough),
    country: countryOf(node.jobLocation),
  };
}

/** A field of one line without its entities; null where it is empty. */
function line(text: string | null): string | null {
  return text === null ? null : fieldText(text, longestLine).replace(/\s+/g, ' ') || null;
}

function countryOf(jobLocation: unknown): string | null {
  const place = [jobLocation].flat()[0];
  const address = isNode(place) ? [place.address ?? place].flat()[0] : null;
  return isNode(address) ? textOf(address.addressCountry, 'name') : null;
}

function webAddress(text: string | null): string | null {
  const url = text !== null && URL.canParse(text) ? new URL(text) : null;
  return url && /^https?:$/.test(url.protocol) ? url.href : null;
}

function locationOf({ jobLocation, jobLocationType }: Node): string | null {
  const places = [jobLocation]
    .flat()
    .slice(0, mostPlaces)
    .flatMap((place) => placeOf(place) ?? []);
  if (/TELECOMMUTE/i.test(textOf(jobLocationType) ?? '')) places.push('Remote');
  return [...new Set(places)].join('; ') || null;
}

function placeOf(place: unknown): string | null {
  if (typeof place === 'string') return place.trim() || null;
  if (!isNode(place)) return null;
  const address = [place.address ?? place].flat()[0];
  if (typeof address === 'string') return address.trim() || null;
  if (!isNode(address)) return textOf(place.name);
  const { addressLocality, addressRegion, addressCountry } = address;
  const parts = [addressLocality, addressRegion, addressCountry].map((part) => textOf(part, 'name'));
  return [...new Set(parts.filter((part) => part !== null))].join(', ') || textOf(place.name);
}

/** A salary as a text, whichever of its many shapes it has: a text, a number, an amount, a range. */
function salaryOf(value: unknown): string | null {
  const salary = [value].flat()[0];
  if (!isNode(salary)) return textOf(salary);
  const amount = [salary.value].flat()[0];
  const range = isNode(amount) ? amount : salary;
  const [least, most] = [textOf(range.minValue), textOf(range.maxValue)];
  const figure =
    least !== null && most !== null && least !== most
      ? `${least}–${most}`
      : (least ?? most ?? textOf(range.value) ?? textOf(amount));
  if (figure === null) return null;
  const unit = textOf(range.unitText) ?? textOf(salary.unitText);
  return [figure, textOf(salary.currency) ?? textOf(range.currency), unit && `a ${unit.toLowerCase()}`]
    .filter(Boolean)
    .join(' ');
}
