import { expect } from 'vitest'

import { openPage, violationsOf } from './browser.ts'

/**
 * Opens a place in light and dark, wide and narrow, and checks it: no accessibility violation, no error, no request to
 * another origin, and no sideways scrolling.
 * @param text Text by which the screen is complete
 */
export async function checkScreen(url: string, text: string | RegExp): Promise<void> {
  for (const options of [
    { scheme: 'light', width: 1440 },
    { scheme: 'dark', width: 390 },
  ] as const) {
    const { page, problems, foreign } = await openPage(url, options)
    await page.getByText(text).first().waitFor()
    expect([options, await violationsOf(page)]).toEqual([options, []])
    const sideways = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    expect({ options, sideways, problems, foreign }).toEqual({ options, sideways: 0, problems: [], foreign: [] })
  }
}
