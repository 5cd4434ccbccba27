// A person's way through the operator's page by the keyboard alone; other tests use the mouse.
import type { ElementHandle, Locator, Page } from 'playwright-core';

/** No control may be further away than so many presses of a key. */
const mostPresses = 30;

/** Whether an element has the focus; else the key that leads nearer to it: to its row of a list, or to the next control. */
const wayTo = (element: Element) => {
  const from = document.activeElement ?? document.body;
  if (element === from) return 'here';
  if (!element.isConnected) return 'gone';
  const row = element.closest('main tbody tr, main li');
  if (!row || row.contains(from) || from.matches('input:not([type="checkbox"]), textarea, select')) return 'Tab';
  return from.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING ? 'j' : 'k';
};

/** Presses keys until this has the focus, as somebody without a mouse does. */
export async function tabTo(page: Page, wanted: Locator): Promise<void> {
  // Looked up once, which costs more than all else here, and again where the page has drawn another in its place.
  const find = async () => (await wanted.elementHandle()) as ElementHandle<Element>;
  let found = await find();
  for (let n = 0; n <= mostPresses; n += 1) {
    let way = await found.evaluate(wayTo);
    if (way === 'gone') {
      found = await find();
      way = await found.evaluate(wayTo);
    }
    if (way === 'here') return;
    await page.keyboard.press(way === 'gone' ? 'Tab' : way);
  }
  throw new Error(`${mostPresses} presses of Tab, j and k do not lead to ${wanted}`);
}

/** The button that stands where another was, once that has done its work. */
const otherHalf: Record<string, string> = {
  Pause: 'Unpause',
  Unpause: 'Pause',
  Throttle: 'Unthrottle',
  Unthrottle: 'Throttle',
};

/** One way through the page; keeps what was pressed and looked at, by the names that the docs say in bold. */
export class Walk {
  readonly names: string[] = [];
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  /** Presses what is called so, or what stands here in its stead. */
  async press(name: string, at: Locator): Promise<void> {
    this.names.push(name);
    await this.go(at);
  }

  /** Presses what the docs have no name for, such as a row. */
  async go(at: Locator): Promise<void> {
    await tabTo(this.page, at);
    await this.page.keyboard.press('Enter');
  }

  async see(name: string, shown: Locator): Promise<void> {
    this.names.push(name);
    await shown.waitFor();
  }

  /** Goes to a screen by `g` and its letter. */
  async screen(name: string, letter: string): Promise<void> {
    this.names.push(name);
    await this.page.keyboard.press('g');
    await this.page.keyboard.press(letter);
    await this.page.getByRole('heading', { level: 2, name, exact: true }).waitFor();
  }

  /** Finds a pipeline by its name. */
  async search(text: string): Promise<void> {
    this.names.push('Search');
    await this.page.keyboard.press('/');
    const palette = this.page.getByRole('dialog', { name: 'Search' });
    await this.page.keyboard.type(text);
    const hit = palette.getByRole('link', { name: `${text} pipeline` });
    await hit.waitFor();
    await this.page.keyboard.press('Enter');
    await this.page.getByRole('heading', { level: 2, name: `Pipeline ${text}` }).waitFor();
  }

  /** Goes back, by the browser's own button or key. */
  async back(): Promise<void> {
    await this.page.goBack();
  }

  /** Opens the dialog of an action, says why, and does it. */
  async does(action: string, within: Page | Locator = this.page): Promise<void> {
    await this.press(action, within.getByRole('button', { name: action, exact: true }));
    const dialog = this.page.getByRole('dialog');
    const reason = dialog.getByLabel('Reason');
    await tabTo(this.page, reason);
    await this.page.keyboard.type('as the playbook says');
    await this.go(dialog.getByRole('button', { name: action, exact: true }));
    await dialog.waitFor({ state: 'hidden' });
    const focused = await this.page.evaluate(() => document.activeElement?.textContent);
    // The button of one half of a pair becomes the other's, and keeps the focus.
    if (focused !== action && focused !== otherHalf[action])
      throw new Error(`After ${action} the focus is at ${focused}, not where it was`);
  }

  /** Chooses a stage in the graph. */
  async stage(name: string): Promise<void> {
    const graph = this.page.getByRole('region', { name: 'Graph of the stages' });
    await this.go(graph.getByRole('link', { name: new RegExp(`^${name}`) }));
    await this.atStage(name);
  }

  async atStage(name: string): Promise<void> {
    await this.page.getByRole('heading', { name: `Stage ${name}` }).waitFor();
  }

  /** Retries all of a group of dead letters, once it has been said how many they are. */
  async retryGroup(group: RegExp, many: number): Promise<void> {
    const retry = 'Retry all …';
    await this.press(retry, this.page.getByRole('row', { name: group }).getByRole('button', { name: retry }));
    await this.page.getByText(`${many} runs, from`).waitFor();
    await this.does('Begin');
    await this.page.getByText('✓ done').waitFor();
  }
}
