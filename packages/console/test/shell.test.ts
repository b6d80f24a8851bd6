import { describe, expect, test } from 'vitest'

import { beforeScreens, goTo, hasBrowser, openPage, violationsOf } from './browser.ts'
import { CrashingServer } from './crashing-server.ts'
import { SCREENS } from './screens.ts'
import { Server } from './server.ts'
import { SECRET, tokenOf } from './tokens.ts'

let server: Server
beforeScreens(async (held) => {
  server = held.use(await Server.start())
})

// Pages wait for a share of the processors, which the whole suite uses.
describe.skipIf(!hasBrowser)('in a real browser', { timeout: 120_000 }, () => {
  test('console - every screen opens by its keys, without errors, foreign requests or refusals of the policy', async () => {
    const { page, problems, foreign } = await openPage(server.console)
    for (const [key, title] of Object.entries(SCREENS)) {
      await goTo(page, key)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await expect.poll(() => page.title()).toBe(`${title} · Signalbox`)
    }
    expect({ problems, foreign }).toEqual({ problems: [], foreign: [] })
  })

  test('console - ? lists the keys, Escape closes the list and returns the focus', async () => {
    const { page } = await openPage(server.console)
    const link = page.getByRole('navigation').getByRole('link', { name: 'Agents' })
    await link.focus()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'detached' })
    await expect.poll(() => link.evaluate((element) => element === document.activeElement)).toBe(true)
  })

  test('console - a lost connection is shown, and mends itself when the server is back', async () => {
    await using other = await CrashingServer.start()
    const { page } = await openPage(other.console)
    await page.getByRole('banner').getByText('Ready').waitFor()
    await other.stop()
    await page.getByText('Connection lost.').waitFor()
    await other.resume()
    await page.getByText('Connection lost.').waitFor({ state: 'detached' })
    await page.getByRole('banner').getByText('Ready').waitFor()
    await expect.poll(() => page.getByRole('status').first().textContent()).toBe('')
  })

  test('console - with authentication a token is asked for, kept for the tab, and sent as a header only', async () => {
    await using closed = await Server.start({ API_AUTHENTICATION_ENABLE: 'true', AUTHENTICATION_SECRET: SECRET })
    const { page, context } = await openPage(closed.console)
    await page.getByLabel('Token').fill('nonsense')
    await page.keyboard.press('Enter')
    await page.getByText('The server refused the token').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.getByLabel('Token').fill(tokenOf(SECRET))
    await page.keyboard.press('Enter')
    await page.getByRole('banner').getByText('Ready').waitFor()
    const urls: string[] = []
    page.on('request', (request) => urls.push(request.url()))
    await page.reload()
    await page.getByRole('banner').getByText('Ready').waitFor()
    expect(urls.filter((url) => url.includes('eyJ'))).toEqual([])
    expect(await context.cookies()).toEqual([])
    await goTo(page, 'l')
    await page.locator('.badge', { hasText: 'Live' }).waitFor()
    expect(urls.filter((url) => url.includes('eyJ'))).toEqual([])
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
  })
})
