import type { Locator, Page } from 'playwright-core'

/** Counts the clicks and the keys of an operator, and the time. */
export class Operator {
  readonly #page: Page
  readonly #start = performance.now()
  clicks = 0
  keys = 0

  constructor(page: Page) {
    this.#page = page
  }

  get seconds(): number {
    return (performance.now() - this.#start) / 1_000
  }

  async click(target: Locator): Promise<void> {
    this.clicks++
    await target.click()
  }

  /** Presses keys one after the other. */
  async press(...keys: readonly string[]): Promise<void> {
    this.keys += keys.length
    // At once: the letter after `g` counts for 1.5 s only.
    await Promise.all(keys.map((key) => this.#page.keyboard.press(key)))
  }

  async type(text: string): Promise<void> {
    this.keys += text.length
    await this.#page.keyboard.type(text)
  }

  /** Moves the focus with the tabulator until the element has it. */
  async tabTo(target: Locator, most = 60): Promise<void> {
    await target.waitFor()
    for (let presses = 0; presses < most; presses++) {
      if (await target.evaluate((element) => element === document.activeElement)) return
      await this.press('Tab')
    }
    throw new Error(`${String(target)} has no focus after ${most} tabulators`)
  }
}
