/** The fields of the article in a page's JSON-LD, as written. */
export interface StructuredData {
  image?: string;
  author?: string;
  published?: string;
  language?: string;
}

type Node = Record<string, unknown>;

const mostScripts = 10;
const mostNodes = 200;
const articles = /(?:Article|BlogPosting|Report|LiveBlogPosting)$/;

/** Reads the first article among the page's structured data. Skips scripts that are no JSON. */
export function readStructuredData(document: Document): StructuredData {
  const scripts = [...document.querySelectorAll('script[type="application/ld+json"]')].slice(0, mostScripts);
  for (const script of scripts) {
    const article = nodesOf(parse(script.textContent ?? '')).find(isArticle);
    if (article) {
      return {
        image: textOf(article.image, 'url'),
        author: authorsOf(article.author),
        published: textOf(article.datePublished, '@value'),
        language: textOf(article.inLanguage, 'alternateName'),
      };
    }
  }
  return {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the objects at the top and in a graph. */
function nodesOf(value: unknown): Node[] {
  const top = Array.isArray(value) ? value : [value];
  return top
    .slice(0, mostNodes)
    .flatMap((node) => (isNode(node) && Array.isArray(node['@graph']) ? node['@graph'] : [node]))
    .slice(0, mostNodes)
    .filter(isNode);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isArticle(node: Node): boolean {
  return [node['@type']].flat().some((type) => typeof type === 'string' && articles.test(type));
}

/** Returns the text itself, that under `key` of an object, or either of the first in a list. */
function textOf(value: unknown, key: string): string | undefined {
  const one = Array.isArray(value) ? value[0] : value;
  const text = isNode(one) ? one[key] : one;
  return typeof text === 'string' ? text : undefined;
}

function authorsOf(value: unknown): string | undefined {
  const names = [value].flat().map((author) => textOf(author, 'name'));
  return names.filter((name) => name !== undefined).join(', ') || undefined;
}
