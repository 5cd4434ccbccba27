// Windows of the operator's page in tests: titles to wait for, pictures, barriers, and answers of the project that are changed.
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { barriers } from './barriers.ts';

/** Waits for a screen by its title. */
export const title = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 2, name }).waitFor();

/** Keeps a picture of the whole page, where SCREENSHOTS names a folder. */
export const shoot = async (page: Page, name: string) => {
  const folder = process.env.SCREENSHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
};

/**
 * Fails for what axe finds here, light and dark, wide and narrow, and where the page is wider than its window. A theme changes no
 * width and a width no colour, so that two of the four are enough.
 */
export async function isOpenToAll(page: Page, name: string): Promise<void> {
  for (const [width, theme] of [
    [1280, 'light'],
    [390, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: theme });
    const found = await barriers(page);
    // On a narrow one no table is wider than its place, either; a graph may be.
    const wide = await page.evaluate(() => {
      const tables = innerWidth < 640 ? [...document.querySelectorAll('.small')] : [];
      const over = tables.map((table) => table.scrollWidth - table.clientWidth);
      return Math.max(0, ...over) + document.documentElement.scrollWidth;
    });
    await shoot(page, `${name}-${theme}-${width}`);
    expect({ name, theme, width: wide, found }).toEqual({ name, theme, width, found: [] });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** Answers a question of the page as the project does, but for what `change` makes of it. */
export async function changeAnswer(page: Page, name: string, change: (answer: Record<string, unknown>) => object) {
  await page.route(`**/millrace_${name}`, async (route) => {
    const response = await route.fetch();
    // A page that has been left meanwhile wants no answer.
    await route.fulfill({ response, json: change(await response.json()) }).catch(() => {});
  });
}
