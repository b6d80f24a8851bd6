import { openPage, violationsOf } from './browser.ts'

const VIEWS = [
  { scheme: 'light', width: 1440, height: 900 },
  { scheme: 'dark', width: 390, height: 900 },
] as const

/**
 * Opens a place, in light and wide, then in dark and narrow. Returns violations of accessibility, errors, requests to other
 * origins, and sideways scrolling.
 * @param text Text by which the screen is complete
 */
export async function screenProblems(url: string, text: string | RegExp): Promise<readonly string[]> {
  const { page, problems, foreign } = await openPage(url)
  const found: string[] = []
  for (const { scheme, width, height } of VIEWS) {
    await page.emulateMedia({ colorScheme: scheme })
    await page.setViewportSize({ width, height })
    await page.getByText(text).first().waitFor()
    const sideways = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    found.push(...(await violationsOf(page)))
    if (sideways !== 0) found.push(`${url} scrolls sideways by ${String(sideways)} px at ${width} px`)
  }
  return [...found, ...problems, ...foreign]
}
