import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { closeBrowser, hasBrowser, openPage, violationsOf } from './browser.ts'
import { SCREENS } from './screens.ts'
import { Server } from './server.ts'
import { SECRET, tokenOf } from './tokens.ts'

let server: Server
beforeAll(async () => {
  if (hasBrowser) server = await Server.start()
}, 60_000)
afterAll(async () => {
  await closeBrowser()
  await server?.[Symbol.asyncDispose]()
})

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test.for(['light', 'dark'] as const)('console - every screen has no accessibility violation, %s', async (scheme) => {
    const { page } = await openPage(server.console, { scheme })
    for (const [key, title] of Object.entries(SCREENS)) {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      expect([title, await violationsOf(page)]).toEqual([title, []])
    }
  })

  test('console - actions that the role of the operator forbids are not offered', async () => {
    await using closed = await Server.start({ API_AUTHENTICATION_ENABLE: 'true', AUTHENTICATION_SECRET: SECRET })
    const { page } = await openPage(`${closed.console}#/channels`)
    for (const [roles, offered] of [
      [['ReadOnly'], 0],
      [['ReadWrite'], 1],
    ] as const) {
      await page.getByLabel('Token').fill(tokenOf(SECRET, roles))
      await page.keyboard.press('Enter')
      await page.getByText('There is no channel.').waitFor()
      await expect.poll(() => page.getByRole('button', { name: 'Create channel' }).count()).toBe(offered)
      await page.getByRole('button', { name: 'Sign out' }).click()
    }
  })
})
