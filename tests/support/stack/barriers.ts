import axe from 'axe-core';
import type { Page } from 'playwright-core';

const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** The rules of those that a change of colours alone may break. */
const ofColours = ['color-contrast', 'link-in-text-block'];

/** The faults that axe finds on a page against WCAG 2.2 A and AA, each with where; by the rules of colours alone where that is asked. */
export async function barriers(page: Page, isOfColours = false): Promise<string[]> {
  // A dialog that still fades in has too little contrast for a tenth of a second.
  await page.emulateMedia({ reducedMotion: 'reduce' });
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  const found = await page.evaluate(
    async (runOnly) => {
      const { axe } = window as unknown as {
        axe: { run: (what: unknown, how: unknown) => Promise<{ violations: never[] }> };
      };
      return (await axe.run(document, { runOnly })).violations as unknown[];
    },
    isOfColours ? { type: 'rule', values: ofColours } : { type: 'tag', values: tags },
  );
  return (found as { id: string; nodes: { html: string }[] }[]).map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}
