import { openPage, violationsOf } from './browser.ts'

interface View {
  readonly scheme: 'light' | 'dark'
  readonly width: number
}

const VIEWS: readonly View[] = [
  { scheme: 'light', width: 1440 },
  { scheme: 'dark', width: 390 },
]

/** The other two pairs of scheme and width. */
export const OTHER_VIEWS: readonly View[] = [
  { scheme: 'dark', width: 1440 },
  { scheme: 'light', width: 390 },
]

/**
 * Opens a place, in light and wide, then in dark and narrow. Returns violations of accessibility, errors, requests to other
 * origins, and sideways scrolling.
 * @param text Text by which the screen is complete
 */
export async function screenProblems(url: string, text: string | RegExp, views = VIEWS): Promise<readonly string[]> {
  const { page, problems, foreign } = await openPage(url)
  const found: string[] = []
  for (const { scheme, width } of views) {
    await page.emulateMedia({ colorScheme: scheme })
    await page.setViewportSize({ width, height: 900 })
    await page.getByText(text).first().waitFor()
    const sideways = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    found.push(...(await violationsOf(page)))
    if (sideways !== 0) found.push(`${url} scrolls sideways by ${String(sideways)} px at ${width} px`)
  }
  return [...found, ...problems, ...foreign]
}
