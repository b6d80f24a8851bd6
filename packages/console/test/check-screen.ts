import { openPage, violationsOf } from './browser.ts'

/**
 * Opens a place in light and dark, wide and narrow. Returns violations of accessibility, errors, requests to other
 * origins, and sideways scrolling.
 * @param text Text by which the screen is complete
 */
export async function screenProblems(url: string, text: string | RegExp): Promise<readonly string[]> {
  const found: string[] = []
  for (const options of [
    { scheme: 'light', width: 1440 },
    { scheme: 'dark', width: 390 },
  ] as const) {
    const { page, problems, foreign } = await openPage(url, options)
    await page.getByText(text).first().waitFor()
    const sideways = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    found.push(...(await violationsOf(page)), ...problems, ...foreign)
    if (sideways !== 0) found.push(`${url} scrolls sideways by ${String(sideways)} px at ${options.width} px`)
  }
  return found
}
