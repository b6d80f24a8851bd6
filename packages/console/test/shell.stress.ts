import { describe, expect, test } from 'vitest'

import { beforeScreens, goTo, hasBrowser, openPage, violationsOf } from './browser.ts'
import { SCREENS } from './screens.ts'
import { Server } from './server.ts'

let server: Server
beforeScreens(async (held) => {
  server = held.use(await Server.start())
})

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - every screen has no accessibility violation, light and dark', async () => {
    const { page } = await openPage(server.console)
    for (const [key, title] of Object.entries(SCREENS)) {
      await goTo(page, key)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      expect([title, await violationsOf(page)]).toEqual([title, []])
      // Of the same elements, another theme changes the colors alone.
      await page.emulateMedia({ colorScheme: 'dark' })
      expect([title, 'dark', await violationsOf(page, 'colors')]).toEqual([title, 'dark', []])
      await page.emulateMedia({ colorScheme: 'light' })
    }
  })

  test('console - an empty registry says what fills it', async () => {
    const { page } = await openPage(`${server.console}#/agents`)
    await page.getByText('No agent is registered.').waitFor()
    expect(await page.getByRole('table').count()).toBe(0)
  })

  test('console - without webhooks the screen names the setting', async () => {
    const { page } = await openPage(`${server.console}#/webhooks`)
    await page.getByText('Webhooks are turned off.').waitFor()
    expect(await page.getByRole('link', { name: 'WEBHOOKS_ENABLE' }).getAttribute('href')).toBe(
      '#/settings?search=webhooks',
    )
  })
})
